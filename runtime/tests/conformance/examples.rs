//! Examples 1.5, 1.6 and 1.11 of the requirements, written with the calls of the runtime. Never checks a value against anything
//! but the table of the examples or what the program itself has stored.

use rma::{Access, ErrorKind, Exposure, Info, LockKind, Origins, Pending, Rank, Team, Window};

use crate::{Case, Outcome, case, flags, is_full, kind_of, until};

pub(crate) const CASES: &[Case] = &[
    case!(a_put_between_start_and_complete, [2]),
    case!(a_strong_start_returns_after_the_post, [2]),
    case!(an_exclusive_lock_needs_no_call_of_the_target, [2]),
    case!(the_checkerboard_gives_the_table, [1, 2, 3, 4, 6]),
    case!(unchecked_starts_never_read_a_stale_value, [1, 2, 4]),
    case!(unchecked_starts_save_the_handshake, [4]).connected(),
    case!(a_post_after_the_complete_is_caught, [2]).under(&[""]),
    case!(without_the_barrier_a_late_post_is_caught, [2]).under(&[""]),
    case!(a_ring_of_one_direction_is_caught, [3]).under(&[""]),
    case!(the_last_exposure_has_to_be_closed, [2]),
];

// covers: EX-E105-01, EX-E105-04 -- the target makes no call but loads until the origin is done
fn a_put_between_start_and_complete(team: &Team) -> Outcome {
    const LEN: usize = 1000;
    let mut window = Window::<f64>::allocate(team, LEN)?;
    let done = flags::<u64>(team, 1)?;
    let value = |at: usize| (1 + at) as f64;
    if team.rank() == Rank(0) {
        let exposure = window.post(Origins::Any)?;
        until(|| done.load(0).unwrap() == 1);
        exposure.wait(1)?;
        assert!(window.local()?.iter().enumerate().all(|(at, &found)| found == value(at)));
    } else {
        let mut buffer: Vec<f64> = (0..LEN).map(value).collect();
        let access = window.start(Rank(0), Info::Strong)?;
        access.put(Rank(0), 0, &buffer)?;
        access.complete()?;
        buffer.fill(-1.0);
        done.lock(Rank(0), LockKind::Shared, |epoch| epoch.put(Rank(0), 0, 1))?;
    }
    Ok(())
}

// covers: EX-E105-02
fn a_strong_start_returns_after_the_post(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let posting = flags::<u64>(team, 1)?;
    for round in 1..=1000 {
        if team.rank() == Rank(0) {
            posting.lock(Rank(1), LockKind::Shared, |epoch| epoch.put(Rank(1), 0, round))?;
            window.post(Origins::Any)?.wait(1)?;
        } else {
            let access = window.start(Rank(0), Info::Strong)?;
            assert!(round <= posting.load(0)?, "the start came before the post");
            access.put(Rank(0), 0, round)?;
            access.complete()?;
        }
    }
    Ok(())
}

// covers: EX-E106-03
fn an_exclusive_lock_needs_no_call_of_the_target(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    let done = flags::<u64>(team, 1)?;
    if team.rank() == Rank(0) {
        until(|| done.load(0).unwrap() == 1);
        assert_eq!(*window.local()?, [1000]);
    } else {
        for round in 1..=1000 {
            window.lock(Rank(0), LockKind::Exclusive, |epoch| epoch.put(Rank(0), 0, round))?;
        }
        done.lock(Rank(0), LockKind::Shared, |epoch| epoch.put(Rank(0), 0, 1))?;
    }
    Ok(())
}

/// Words of a cell of the ring: its value and the number of the step that made it.
const CELL: usize = 2;

/// A rank's part of the coupled ring of two arrays, with a copy of the neighbours' cell on either side.
struct Ring {
    cells: usize,
    left: Rank,
    right: Rank,
    /// Both, or the one that is on both sides.
    neighbours: Vec<Rank>,
}

impl Ring {
    fn new(team: &Team, cells: usize) -> Ring {
        let (me, size) = (team.rank().0, team.size());
        let (left, right) = (Rank((me + size - 1) % size), Rank((me + 1) % size));
        let mut neighbours = vec![left, right];
        neighbours.dedup();
        Ring { cells, left, right, neighbours }
    }

    /// Makes a window with the first values of a rank's cells.
    fn window(&self, team: &Team, first: impl Fn(u64) -> u64) -> rma::Result<Window<u64>> {
        let mut window = Window::allocate(team, CELL * self.cells)?;
        let offset = self.cells as u64 * u64::from(team.rank().0);
        for (at, words) in window.local_mut()?.chunks_mut(CELL).enumerate() {
            words.copy_from_slice(&[first(offset + at as u64), 0]);
        }
        Ok(window)
    }

    /// Starts at the neighbours and gets the two halo cells.
    fn get_halos<'w>(
        &self,
        exposure: &'w Exposure<'_, u64>,
        info: Info,
        before: Before,
    ) -> rma::Result<Halos<'w>> {
        self.neighbours.iter().try_for_each(|&rank| before(exposure, rank))?;
        let last = CELL * (self.cells - 1);
        let access = exposure.start_group(&self.neighbours, info)?;
        let cells = [access.get_vec(self.left, last..last + CELL)?, access.get_vec(self.right, 0..CELL)?];
        Ok(Halos { access, cells })
    }

    /// The first or third part of a step: from the cells of one array, its halos and the other array.
    fn advance(&self, cells: &mut [u64], halos: [u64; 2], other: &[u64], factor: u64) {
        let old = cells.to_vec();
        for at in 0..self.cells {
            let left = if at == 0 { halos[0] } else { old[at - 1] };
            let right = if at + 1 == self.cells { halos[1] } else { old[at + 1] };
            cells[at] =
                left.wrapping_add(right).wrapping_sub(old[at]).wrapping_add(other[at].wrapping_mul(factor));
        }
    }
}

/// What is done before each start, with the exposure and the target.
type Before = fn(&Exposure<'_, u64>, Rank) -> rma::Result<()>;

fn look_whether_posted(exposure: &Exposure<'_, u64>, rank: Rank) -> rma::Result<()> {
    assert!(exposure.target_posted(rank)?, "rank {rank} has not posted");
    Ok(())
}

/// Halo cells that are on their way.
struct Halos<'w> {
    access: Access<'w, u64>,
    cells: [Pending<'w, Vec<u64>>; 2],
}

impl Halos<'_> {
    /// Completes, compares the step of each cell with what it must be, and counts the comparisons.
    fn complete(self, step: u64, compared: &mut usize) -> rma::Result<[u64; 2]> {
        let cells = self.access.complete_with(self.cells)?;
        for cell in &cells {
            assert_eq!(cell[1], step, "a halo cell of another step");
            *compared += 1;
        }
        Ok([cells[0][0], cells[1][0]])
    }
}

fn load_values(window: &Window<u64>, cells: usize) -> rma::Result<Vec<u64>> {
    (0..cells).map(|at| window.load(CELL * at)).collect()
}

fn store_values(window: &mut Window<u64>, values: &[u64], step: u64) -> rma::Result<()> {
    let mut view = window.local_mut()?;
    for (words, &value) in view.chunks_mut(CELL).zip(values) {
        words.copy_from_slice(&[value, step]);
    }
    Ok(())
}

fn mixed(values: &mut [u64]) {
    values.iter_mut().for_each(|value| *value ^= *value >> 7);
}

/// What K(240, steps) gives: the own cells of both arrays, and how many halo cells had the expected step.
struct Board {
    first: Vec<u64>,
    second: Vec<u64>,
    compared: usize,
}

/// K(240, steps) in the schedule of example 1.11.
fn checkerboard(team: &Team, steps: u64, info: Info, before: Before) -> rma::Result<Board> {
    const N: usize = 240;
    let ring = Ring::new(team, N / team.size() as usize);
    let (cells, n_readers) = (ring.cells, ring.neighbours.len());
    let first_value = |i: u64| (7 * i * i + 3) % 1009;
    let second_value = |i: u64| (13 * i + 5) % 997;
    let mut first = ring.window(team, first_value)?;
    let mut second = ring.window(team, second_value)?;
    let mut compared = 0;
    // The halos of the second array at the start are known.
    let (all, begin) = (N as u64, cells as u64 * u64::from(team.rank().0));
    let mut second_halos = [(begin + all - 1) % all, (begin + cells as u64) % all].map(second_value);
    let mut exposure = first.post(Origins::Any)?;
    // The first post becomes known by this.
    team.barrier()?;
    for step in 1..=steps {
        // Somebody is late now and then, in each step somebody else.
        if (step + 5 * u64::from(team.rank().0)).is_multiple_of(16) {
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
        // (a)
        let other = load_values(&exposure, cells)?;
        let mut values = load_values(&second, cells)?;
        ring.advance(&mut values, second_halos, &other, 3);
        let halos = ring.get_halos(&exposure, info, before)?;
        // (b)
        mixed(&mut values);
        store_values(&mut second, &values, step)?;
        let posted = second.post(Origins::Any)?;
        let first_halos = halos.complete(step - 1, &mut compared)?;
        exposure.wait(n_readers)?;
        // (c)
        let other = load_values(&posted, cells)?;
        let mut values = load_values(&first, cells)?;
        ring.advance(&mut values, first_halos, &other, 5);
        let halos = ring.get_halos(&posted, info, before)?;
        // (d)
        mixed(&mut values);
        store_values(&mut first, &values, step)?;
        exposure = first.post(Origins::Any)?;
        second_halos = halos.complete(step, &mut compared)?;
        posted.wait(n_readers)?;
    }
    exposure.wait(0)?;
    let board = Board { first: load_values(&first, cells)?, second: load_values(&second, cells)?, compared };
    first.free()?;
    second.free()?;
    Ok(board)
}

/// FNV-1a over the little-endian bytes.
fn hash(values: &[u64]) -> u64 {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

// covers: EX-E111-01 -- form R
// covers: EX-E111-07, EX-E111-10
fn the_checkerboard_gives_the_table(team: &Team) -> Outcome {
    for info in [Info::NoCheck, Info::Strong, Info::Weak] {
        let board = checkerboard(team, 100, info, |_, _| Ok(()))?;
        let (first, second) = (team.gather(Rank(0), &board.first)?, team.gather(Rank(0), &board.second)?);
        if let (Some(first), Some(second)) = (first, second) {
            assert_eq!((first[0], second[0]), (18_312_934_280_922_522_960, 17_043_603_417_169_296_781));
            assert_eq!((hash(&first), hash(&second)), (0xf041_1069_f324_ad7c, 0x2df2_de30_f290_6ca5));
        }
    }
    Ok(())
}

// covers: EX-E111-02, EX-E111-03
fn unchecked_starts_never_read_a_stale_value(team: &Team) -> Outcome {
    let steps = if is_full() { 10_000 } else { 400 };
    // Every start looks whether its target has posted, and every halo cell says of which step it is.
    let board = checkerboard(team, steps, Info::NoCheck, look_whether_posted)?;
    assert_eq!(board.compared as u64, 4 * steps, "two halo cells of two arrays in each step");
    Ok(())
}

// covers: EX-E111-09
fn unchecked_starts_save_the_handshake(team: &Team) -> Outcome {
    const STEPS: u64 = 50;
    let mut frames = Vec::new();
    for info in [Info::NoCheck, Info::Strong] {
        let before = team.traffic();
        checkerboard(team, STEPS, info, |_, _| Ok(()))?;
        let after = team.traffic();
        frames.push(after.frames_sent - before.frames_sent);
    }
    // Two arrays with two neighbours each; the rest is the same in both, and some of it is there once.
    let [unchecked, strong] = [frames[0], frames[1]];
    let gets = 4 * STEPS;
    println!(
        "control frames per step: {} unchecked, {} strong",
        (unchecked - gets) / STEPS,
        (strong - gets) / STEPS
    );
    assert_eq!(strong - unchecked, 4 * STEPS);
    Ok(())
}

/// Two ranks that let each other into their windows in turns, the second of which posts at the wrong time.
// covers: EX-E111-04
fn a_post_after_the_complete_is_caught(team: &Team) -> Outcome {
    let mut first = Window::<u64>::allocate(team, 1)?;
    let mut second = Window::<u64>::allocate(team, 1)?;
    let refused = flags::<u64>(team, 1)?;
    let other = Rank(1 - team.rank().0);
    let exposure = first.post(Origins::Any)?;
    team.barrier()?;
    let access = exposure.start(other, Info::NoCheck)?;
    if team.rank() == Rank(0) {
        let posted = second.post(Origins::Any)?;
        access.complete()?;
        // The wait says that the other has completed, from which this rank concludes too much.
        exposure.wait(1)?;
        assert_eq!(
            kind_of(posted.start(other, Info::NoCheck).and_then(|access| access.complete())),
            ErrorKind::NotPosted
        );
        refused.lock(other, LockKind::Shared, |epoch| epoch.put(other, 0, 1))?;
        posted.wait(0)?;
    } else {
        access.complete()?;
        until(|| refused.load(0).unwrap() == 1);
        let posted = second.post(Origins::Any)?;
        exposure.wait(1)?;
        posted.wait(0)?;
    }
    team.barrier()?;
    Ok(())
}

// covers: EX-E111-05
fn without_the_barrier_a_late_post_is_caught(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let refused = flags::<u64>(team, 1)?;
    if team.rank() == Rank(1) {
        until(|| refused.load(0).unwrap() == 1);
    }
    let exposure = window.post(Origins::Any)?;
    if team.rank() == Rank(0) {
        assert_eq!(
            kind_of(exposure.start(Rank(1), Info::NoCheck).and_then(|access| access.complete())),
            ErrorKind::NotPosted
        );
        refused.lock(Rank(1), LockKind::Shared, |epoch| epoch.put(Rank(1), 0, 1))?;
    }
    team.barrier()?;
    // After the barrier the post is known.
    exposure.start(Rank(1 - team.rank().0), Info::NoCheck)?.complete()?;
    exposure.wait(1)?;
    Ok(())
}

/// Every rank gets from its left neighbour only: that its reader is done says nothing about whom it reads from.
// covers: EX-E111-06
fn a_ring_of_one_direction_is_caught(team: &Team) -> Outcome {
    let mut first = Window::<u64>::allocate(team, 1)?;
    let mut second = Window::<u64>::allocate(team, 1)?;
    let refused = flags::<u64>(team, 1)?;
    let left = Rank((team.rank().0 + team.size() - 1) % team.size());
    let exposure = first.post(Origins::Any)?;
    team.barrier()?;
    let access = exposure.start(left, Info::NoCheck)?;
    if team.rank() == Rank(0) {
        // Slow with its own post, which is no rank's business but its reader's.
        until(|| refused.load(0).unwrap() == 1);
    }
    let posted = second.post(Origins::Any)?;
    access.complete()?;
    exposure.wait(1)?;
    if team.rank() == Rank(1) {
        assert_eq!(
            kind_of(posted.start(left, Info::NoCheck).and_then(|access| access.complete())),
            ErrorKind::NotPosted
        );
        refused.lock(Rank(0), LockKind::Shared, |epoch| epoch.put(Rank(0), 0, 1))?;
    }
    posted.wait(0)?;
    team.barrier()?;
    Ok(())
}

// covers: EX-E111-07
fn the_last_exposure_has_to_be_closed(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    std::mem::forget(window.post(Origins::Any)?);
    assert_eq!(kind_of(window.free()), ErrorKind::EpochStillOpen);
    let mut window = Window::<u64>::allocate(team, 1)?;
    window.post(Origins::Any)?.wait(0)?;
    window.free()?;
    Ok(())
}
