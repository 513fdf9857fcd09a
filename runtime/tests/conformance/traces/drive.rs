// Runs the rounds of a program on a window of elements `T`, which the module that includes this text names. Never decides what is right:
// it compares with what the program expects.

use rma::{
    AccessEpoch, And, Basic, Datatype, FenceEpoch, Hints, Info, LockEpoch, LockKind, Max, Min, Or, Origins, Pending, Prod,
    Rank, Replace, Section, Strided, Sum, Team, Window, Xor, own,
};

use crate::traces::model::Combine;
use crate::traces::Described;
use crate::traces::plan::{Access, Cells, Exposure, Form, Kind, Round, Style, Waits};

/// What the end of an epoch opens: single values and several ones, each with the number of its access.
type Reads<'epoch> = (Vec<(usize, Pending<'epoch, T>)>, Vec<(usize, Pending<'epoch, Vec<T>>)>);

fn section(cells: Cells) -> Section<'static> {
    match cells.count {
        1 => Section::from(cells.start..cells.start + cells.block),
        count => {
            Section::from(Strided { start: cells.start, count, block: cells.block, stride: cells.stride })
        }
    }
}

/// The cells as a datatype that begins at the first one.
fn layout(cells: Cells, described: Described) -> rma::Result<Option<Datatype>> {
    let element = Datatype::of::<T>();
    match described {
        Described::Sections => Ok(None),
        // Two ways to the same cells, by turns.
        Described::Datatypes if cells.start.is_multiple_of(2) => {
            element.vector(cells.count, cells.block, cells.stride).map(Some)
        }
        Described::Datatypes => {
            let block = |at: usize| at * cells.stride..at * cells.stride + cells.block;
            element.indexed(&(0..cells.count).map(block).collect::<Vec<_>>()).map(Some)
        }
    }
}

/// What an epoch is opened with, by its style's name of a late wait.
fn info(waits: Waits, [opening, closing]: [&str; 2]) -> Hints {
    match waits {
        Waits::Strong => Info::Strong.into(),
        Waits::Opening => Info::Weak.with("weak", opening),
        Waits::Transfer => Info::Weak.with("weak", "transfer"),
        Waits::Closing => Info::Weak.with("weak", closing),
    }
}

fn elements(values: &[u64]) -> Vec<T> {
    values.iter().map(|&value| T::from_bits(value)).collect()
}

fn bits(values: &[T]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Values, each with the number of its access.
type Numbered = Vec<(usize, Vec<T>)>;

/// The accesses of one rank in a round, by their numbers.
type Mine<'a> = Vec<(usize, &'a Access)>;

macro_rules! by_operation {
    ($combine:expr, $operation:ident => $call:expr) => {
        match $combine {
            Combine::Sum => {
                let $operation = Sum;
                $call
            }
            Combine::Prod => {
                let $operation = Prod;
                $call
            }
            Combine::Min => {
                let $operation = Min;
                $call
            }
            Combine::Max => {
                let $operation = Max;
                $call
            }
            Combine::And => {
                let $operation = And;
                $call
            }
            Combine::Or => {
                let $operation = Or;
                $call
            }
            Combine::Xor => {
                let $operation = Xor;
                $call
            }
            Combine::Replace => {
                let $operation = Replace;
                $call
            }
        }
    };
}

/// The transfers of an epoch, which every style has under the same names.
macro_rules! issue {
    ($name:ident, $epoch:ident) => {
        fn $name<'scope>(
            epoch: &$epoch<'scope, T>,
            (mine, described): (&Mine<'_>, Described),
            buffers: &'scope mut [(usize, Vec<T>)],
        ) -> rma::Result<Reads<'scope>> {
            let (mut ones, mut many) = (Vec::new(), Vec::new());
            for &(number, access) in mine {
                let (target, first) = (Rank(access.target), access.cells.start);
                let layout = layout(access.cells, described)?;
                let at = match &layout {
                    Some(datatype) => Section::from((first, datatype)),
                    None => section(access.cells),
                };
                match &access.kind {
                    Kind::Put(values) => epoch.put(target, at, elements(values))?,
                    Kind::PutOwn(from) => epoch.put(target, at, own(*from))?,
                    Kind::Get => many.push((number, epoch.get_vec(target, at)?)),
                    Kind::GetOwn(into) => epoch.get(target, at, own(*into))?,
                    Kind::GetOne => ones.push((number, epoch.get_value(target, first)?)),
                    Kind::Accumulate(combine, values) => by_operation!(combine, operation => {
                        epoch.accumulate(target, at, operation, elements(values))?
                    }),
                    Kind::GetAccumulate(combine, values) => by_operation!(combine, operation => {
                        many.push((number, epoch.get_accumulate(target, at, operation, elements(values))?))
                    }),
                    Kind::Fetch(combine, value) => by_operation!(combine, operation => {
                        ones.push((number, epoch.fetch_op(target, first, operation, T::from_bits(*value))?))
                    }),
                    Kind::Swap { expected, new } => {
                        let (expected, new) = (T::from_bits(*expected), T::from_bits(*new));
                        ones.push((number, epoch.compare_swap(target, first, expected, new)?));
                    }
                    // Into the buffers below, and by the lock round itself.
                    Kind::GetInto | Kind::Increment(_) => {}
                    Kind::Load | Kind::Store(_) => unreachable!("local accesses are rounds of their own"),
                }
            }
            for (number, buffer) in buffers {
                let access = mine.iter().find(|(other, _)| other == number).expect("the buffer has an access").1;
                let layout = layout(access.cells, described)?;
                let at = match &layout {
                    Some(datatype) => Section::from((access.cells.start, datatype)),
                    None => section(access.cells),
                };
                epoch.get(Rank(access.target), at, buffer.as_mut_slice())?;
            }
            Ok((ones, many))
        }
    };
}
issue!(issue_in_fence, FenceEpoch);
issue!(issue_in_access, AccessEpoch);
issue!(issue_in_lock, LockEpoch);

/// What the reads of a round gave, by the numbers of the accesses.
#[derive(Default)]
struct Found(Vec<(usize, Vec<u64>)>);

impl Found {
    fn take(&mut self, (ones, many): (Vec<(usize, T)>, Numbered), buffers: Numbered) {
        self.0.extend(ones.into_iter().map(|(number, value)| (number, bits(&[value]))));
        self.0.extend(many.into_iter().chain(buffers).map(|(number, values)| (number, bits(&values))));
    }

    fn check(self, round: &Round) {
        for (number, values) in self.0 {
            let access = &round.accesses[number];
            assert_eq!(
                values, access.expected,
                "access {number}, {access:?}, of a round of {:?}",
                round.style
            );
        }
    }
}

/// A buffer for each get into one.
fn buffers(mine: &Mine<'_>) -> Numbered {
    let into = mine.iter().filter(|(_, access)| matches!(access.kind, Kind::GetInto));
    into.map(|(number, access)| (*number, vec![T::from_bits(0); access.expected.len()])).collect()
}

/// Does the part of this rank in a round.
pub(crate) fn run(
    team: &Team,
    window: &mut Window<T>,
    round: &Round,
    described: Described,
) -> rma::Result<()> {
    let me = team.rank();
    let all: Mine<'_> = (0..).zip(&round.accesses).filter(|(_, access)| access.origin == me.0).collect();
    let toward = |target: Rank| -> Mine<'_> {
        all.iter().copied().filter(|(_, access)| access.target == target.0).collect()
    };
    let mut found = Found::default();
    match &round.style {
        Style::Fence => {
            let mut buffers = buffers(&all);
            let reads = window.fence(|epoch| issue_in_fence(epoch, (&all, described), &mut buffers))?;
            found.take(reads, buffers);
        }
        Style::Exposures { posts, promised } => {
            let targets: Vec<Rank> =
                team.ranks().filter(|target| is_let_in(&posts[target.index()], me)).collect();
            let access = |window: &Window<T>| -> rma::Result<Found> {
                let info = match promised {
                    true => {
                        team.barrier()?;
                        Info::NoCheck.into()
                    }
                    false => info(round.waits, ["start", "complete"]),
                };
                let mut found = Found::default();
                let mut buffers = buffers(&all);
                let reads =
                    window.access(&targets, info, |epoch| issue_in_access(epoch, (&all, described), &mut buffers))?;
                found.take(reads, buffers);
                Ok(found)
            };
            match &posts[me.index()] {
                Some(Exposure { origins, form }) => {
                    let group: Vec<Rank> = origins.iter().map(|&rank| Rank(rank)).collect();
                    let whom = match form {
                        Form::AnyCount => Origins::Any,
                        Form::GroupCount | Form::GroupAll => Origins::Group(&group),
                    };
                    let exposure = window.post(whom)?;
                    found = access(&exposure)?;
                    match form {
                        Form::AnyCount | Form::GroupCount => exposure.wait(group.len())?,
                        Form::GroupAll => exposure.wait_all()?,
                    }
                }
                None => found = access(window)?,
            }
        }
        Style::Locks { exclusive } => {
            for target in team.ranks() {
                let mine = toward(target);
                if mine.is_empty() {
                    continue;
                }
                let kind = match exclusive[target.index()] {
                    true => LockKind::Exclusive,
                    false => LockKind::Shared,
                };
                let alone =
                    round.accesses.iter().all(|access| access.target != target.0 || access.origin == me.0);
                let info = if alone { Info::NoCheck.into() } else { info(round.waits, ["lock", "unlock"]) };
                let mut buffers = buffers(&mine);
                let reads = window.lock_with(target, kind, info, |epoch| {
                    for (_, access) in &mine {
                        if let Kind::Increment(value) = access.kind {
                            let cell = access.cells.start;
                            let now = epoch.flush(epoch.get_value(target, cell))?.to_bits();
                            epoch.put(target, cell, T::from_bits(now.wrapping_add(value)))?;
                        }
                    }
                    issue_in_lock(epoch, (&mine, described), &mut buffers)
                })?;
                found.take(reads, buffers);
            }
        }
        Style::Local { views } => {
            let cells = |access: &Access| access.cells.all();
            match views {
                true => {
                    let mut view = window.local_mut()?;
                    for (number, access) in &all {
                        match &access.kind {
                            Kind::Store(values) => {
                                cells(access).iter().zip(values).for_each(|(&cell, &value)| {
                                    view[cell] = T::from_bits(value);
                                });
                            }
                            _ => {
                                let values = cells(access).iter().map(|&cell| view[cell].to_bits()).collect();
                                found.0.push((*number, values));
                            }
                        }
                    }
                }
                false => window.lock(me, LockKind::Exclusive, |epoch| {
                    for (number, access) in &all {
                        match &access.kind {
                            Kind::Store(values) => {
                                for (&cell, &value) in cells(access).iter().zip(values) {
                                    epoch.store(cell, T::from_bits(value))?;
                                }
                            }
                            _ => {
                                let values = cells(access).into_iter().map(|cell| epoch.load(cell));
                                found.0.push((*number, bits(&values.collect::<rma::Result<Vec<T>>>()?)));
                            }
                        }
                    }
                    Ok(())
                })?,
            }
        }
    }
    found.check(round);
    if round.barrier {
        team.barrier()?;
    }
    Ok(())
}

fn is_let_in(exposure: &Option<Exposure>, origin: Rank) -> bool {
    exposure.as_ref().is_some_and(|exposure| exposure.origins.contains(&origin.0))
}
