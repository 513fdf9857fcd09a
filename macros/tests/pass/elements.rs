//! Structures as elements: nested, by number, packed, with padding that is allowed.

use rma::{Bool, Element, Rank, Team, Window, rma_epoch, rma_test};

#[derive(Clone, Copy, Debug, Default, PartialEq, Element)]
#[repr(C)]
struct Point(f32, f32);

#[derive(Clone, Copy, Debug, PartialEq, Element)]
#[repr(C, packed)]
struct Packed {
    tag: u8,
    points: [Point; 2],
    alive: Bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Element)]
#[element(padded)]
#[repr(C)]
struct Padded {
    small: u32,
    large: f64,
}

#[rma_epoch(fence(u))]
fn send(u: &mut Window<Padded>, to: Rank, value: Padded) -> rma::Result<()> {
    u.at(to)[1] = value;
    Ok(())
}

#[rma_epoch(local(u))]
fn count(u: &mut Window<Packed>) -> rma::Result<usize> {
    Ok(u.iter().filter(|packed| packed.alive.get()).count())
}

#[rma_test(ranks = 2, transports = [local, shm])]
fn structures_travel(team: &Team) -> rma::Result<()> {
    let me = team.rank();
    let mut padded = Window::<Padded>::allocate(team, 3)?;
    send(&mut padded, Rank(1 - me.0), Padded { small: me.0, large: 0.5 })?;
    assert_eq!(padded.load(1)?, Padded { small: 1 - me.0, large: 0.5 });
    let mut packed = Window::<Packed>::allocate(team, 3)?;
    let value = Packed { tag: 7, points: [Point(1.0, 2.0); 2], alive: true.into() };
    packed.fence(|epoch| epoch.put(Rank(0), me.index(), value))?;
    assert_eq!(count(&mut packed)?, if me == Rank(0) { 2 } else { 0 });
    Ok(())
}
