//! A window in a field of a structure, reached by a method.

use rma::{Rank, Team, Window, rma_epoch, rma_test};

struct Heat {
    field: Window<f64>,
    factors: Vec<f64>,
    steps: usize,
}

impl Heat {
    #[rma_epoch(local(u = self.field))]
    fn scale(&mut self) -> rma::Result<()> {
        for (value, factor) in u.iter_mut().zip(&self.factors) {
            *value *= factor;
        }
        self.steps += 1;
        Ok(())
    }

    #[rma_epoch(fence(u = self.field))]
    fn exchange(&mut self, right: Rank) -> rma::Result<()> {
        u.at(right)[0] = self.factors[0];
        u.at(right)[1..3].copy_from_slice(&self.factors);
        Ok(())
    }
}

#[rma_test(ranks = 2, transports = [local, shm])]
fn program(team: &Team) -> rma::Result<()> {
    let mut heat = Heat { field: Window::allocate(team, 3)?, factors: vec![2.0, 3.0], steps: 0 };
    heat.exchange(Rank(1 - team.rank().0))?;
    heat.scale()?;
    assert_eq!(heat.field.local()?.to_vec(), [4.0, 6.0, 3.0]);
    assert_eq!(heat.steps, 1);
    Ok(())
}
