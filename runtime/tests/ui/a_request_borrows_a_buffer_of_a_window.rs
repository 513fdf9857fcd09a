// A buffer is offered that is a window's.
use rma::pgo::{PUTS_OK, ioffer, over};

fn wrong(team: &rma::Team) -> rma::Result<()> {
    let numbers = vec![0_u32; 4];
    let mut window = rma::Window::create(team, numbers)?;
    let mut request = ioffer(team, 1, over(numbers, PUTS_OK), 1)?;
    window.fence(|_| ())?;
    request.wait().map(drop)
}

fn main() {}
