//! The programs that the tests of the launcher launch: one word says which. Never used outside tests.
#![forbid(unsafe_code)]

mod agents;

use std::io::{BufRead, Write};
use std::process::{Command, ExitCode};
use std::str::FromStr;
use std::time::{Duration, Instant};

use rma::pgo::{self, GETS_OK, PUTS_OK, over};
use rma::{Error, Info, LockKind, Max, Min, Origins, Prod, Rank, Sum, Team, Window, Xor};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((program, arguments)) = words.split_first() else {
        eprintln!("usage: rma-test-ranks PROGRAM ARGUMENT ...");
        return ExitCode::from(2);
    };
    rma::run(|team| run(program, arguments, team))
}

fn run(program: &str, arguments: &[String], team: &Team) -> Outcome {
    match program {
        "hello" => hello(team),
        "exchange" => agents::exchange(team, parse(arguments, 0)),
        "unrelated" => agents::unrelated(team, &arguments[0], parse(arguments, 1)),
        "locks" => agents::locks(team),
        "ticks" => agents::ticks(team),
        "lines" => lines(team, parse(arguments, 0)),
        "unfinished" => unfinished(team),
        "echo" => echo(team),
        "environment" => environment(),
        "descriptors" => descriptors(),
        "barriers" => barriers(team, parse(arguments, 0)),
        "forever" => forever(team),
        "offers" => offers(team, &arguments[0]),
        "epochs" => epochs(team, &arguments[0], parse(arguments, 1), parse(arguments, 2)),
        "meeting" => meeting(team, &arguments[0]),
        "exit" => exit(team, parse(arguments, 0), parse(arguments, 1)),
        "fail" => fail(team, parse(arguments, 0)),
        "panic" => panic_at(team, parse(arguments, 0)),
        "leave" => leave(team, parse(arguments, 0)),
        "stubborn" => stubborn(team, parse(arguments, 0)),
        "sleep" => sleep(team, parse(arguments, 0)),
        "late" => late(team, parse(arguments, 0)),
        "late_until" => late_until(team, &arguments[0]),
        "serve" => serve(team, parse(arguments, 0)),
        "outlive" => outlive(team),
        "stalled" => stalled(team),
        "mismatch" => mismatch(team),
        "collectives" => collectives(team),
        "grow" => grow(team),
        "idle" => idle(team, parse(arguments, 0)),
        "time" => time(team, parse(arguments, 0)),
        other => Err(format!("there is no program '{other}'").into()),
    }
}

fn parse<T: FromStr>(arguments: &[String], at: usize) -> T {
    match arguments.get(at).and_then(|text| text.parse().ok()) {
        Some(value) => value,
        None => panic!("argument {at} of {arguments:?} is missing or no number"),
    }
}

/// Writes a line at once, as ranks that share a pipe must.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(format!("{text}\n").as_bytes());
    let _ = out.flush();
}

/// How a call ended, for the test to read.
fn verdict(team: &Team, error: &Error) -> String {
    let context = error.context();
    format!(
        "rank {} got {:?} lost {:?} evidence {:?}: {error}",
        team.rank(),
        error.kind(),
        context.lost,
        context.evidence
    )
}

fn hello(team: &Team) -> Outcome {
    say(&format!("hello from rank {} of {}", team.rank(), team.size()));
    eprintln!("error stream of rank {}", team.rank());
    Ok(())
}

/// Many lines, written in pieces.
fn lines(team: &Team, count: u32) -> Outcome {
    let letter = char::from(b'a' + (team.rank().0 % 26) as u8);
    let mut out = std::io::stdout().lock();
    for line in 0..count {
        let text: String = std::iter::repeat_n(letter, 50 + (line as usize % 200)).collect();
        let (first, second) = text.split_at(text.len() / 2);
        out.write_all(first.as_bytes())?;
        out.flush()?;
        out.write_all(second.as_bytes())?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn unfinished(team: &Team) -> Outcome {
    print!("rank {} ends without an end of line", team.rank());
    std::io::stdout().flush()?;
    Ok(())
}

fn echo(team: &Team) -> Outcome {
    let count = std::io::stdin().lock().lines().try_fold(0, |count, line| {
        say(&format!("rank {} read: {}", team.rank(), line?));
        Ok::<_, std::io::Error>(count + 1)
    })?;
    say(&format!("rank {} read {count} lines", team.rank()));
    Ok(())
}

fn environment() -> Outcome {
    say(&format!("timeout {:?}", std::env::var("RMA_TIMEOUT")));
    Ok(())
}

/// Shows what a program that a rank starts has open.
fn descriptors() -> Outcome {
    let output = Command::new("sh").args(["-c", "ls -l /proc/self/fd"]).output()?;
    say(&format!("child has: {}", String::from_utf8_lossy(&output.stdout).replace('\n', " | ")));
    Ok(())
}

fn barriers(team: &Team, count: u32) -> Outcome {
    for _ in 0..count {
        team.barrier()?;
    }
    say(&format!("rank {} is done and used {} ms", team.rank(), cpu_ms()?));
    Ok(())
}

/// Meets until a file is there.
fn meeting(team: &Team, file: &str) -> Outcome {
    team.barrier()?;
    say(&format!("rank {} runs as process {}", team.rank(), std::process::id()));
    let mut sum = [0_u32];
    while sum[0] == 0 {
        sum = [u32::from(std::path::Path::new(file).exists())];
        team.allreduce(&mut sum, Sum)?;
    }
    say(&format!("rank {} has met", team.rank()));
    Ok(())
}

/// Meets until somebody is lost, and reports that.
fn forever(team: &Team) -> Outcome {
    team.barrier()?;
    say(&format!("rank {} runs as process {}", team.rank(), std::process::id()));
    loop {
        if let Err(error) = team.barrier() {
            say(&verdict(team, &error));
            return Err(error.into());
        }
    }
}

/// Exchanges by put, get and offer until somebody is lost, and reports that.
fn offers(team: &Team, family: &str) -> Outcome {
    const LONG: usize = 1 << 17;
    team.barrier()?;
    say(&format!("rank {} runs as process {}", team.rank(), std::process::id()));
    let (me, size) = (team.rank().0, team.size());
    let (left, right) = (Rank((me + size - 1) % size), Rank((me + 1) % size));
    let mine = vec![u64::from(me); LONG];
    let (mut taken, mut buffer) = (vec![0_u64; LONG], vec![0_u64; 2 * LONG]);
    let mut shared = pgo::malloc::<u64>(team, LONG)?;
    for step in 0_u64.. {
        // What waits with its event, what does not, and what the target serves by itself.
        let len = [1, 300, LONG][step as usize % 3];
        let (mine, taken) = (&mine[..len], &mut taken[..len]);
        let over = over(buffer.as_mut_slice(), PUTS_OK + GETS_OK);
        let outcome = pgo::scope(team, step % 2, |scope| match family {
            "plain" => {
                scope.put(mine, right, 0)?;
                scope.get(taken, left, LONG)?;
                scope.offer(over, 2)
            }
            // Nothing but puts, which need no lock where ranks share memory.
            "direct" => {
                scope.put(mine, right, 0)?;
                scope.offer(pgo::over(&mut shared, PUTS_OK), 1)
            }
            "progressive" => {
                scope.combine().putp(mine, right, 0)?;
                scope.putp(mine, right, LONG)?;
                scope.getp(taken, left, LONG)?;
                scope.offerp(over, 2)
            }
            _ => {
                scope.putc(mine, right, 0)?;
                scope.getc(taken, left, LONG)?;
                scope.offerc(over)
            }
        });
        if let Err(error) = outcome {
            say(&verdict(team, &error));
            return Err(error.into());
        }
    }
    Ok(())
}

/// Every style of synchronization in turn until something goes wrong, and reports that. One rank does what `fault` names in the
/// middle of an epoch of a round: `error`, `panic`, `exit`, `leave` (between two epochs), or `none`.
fn epochs(team: &Team, fault: &str, victim: u32, at: u64) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1024)?;
    let me = team.rank();
    let (right, left) = (Rank((me.0 + 1) % team.size()), Rank((me.0 + team.size() - 1) % team.size()));
    team.barrier()?;
    say(&format!("rank {me} runs as process {}", std::process::id()));
    let mut round = 0;
    let outcome = loop {
        round += 1;
        let strikes = me.0 == victim && round == at;
        if strikes && fault == "leave" {
            return Ok(());
        }
        let strike = || match fault {
            "panic" if strikes => panic!("panicked on purpose"),
            "exit" if strikes => std::process::exit(3),
            _ => {}
        };
        let one_round = |window: &mut Window<u64>| -> rma::Result<()> {
            window.fence(|epoch| {
                epoch.put(right, 0, [round; 512])?;
                strike();
                Ok(())
            })?;
            window.lock(right, LockKind::Exclusive, |epoch| {
                strike();
                epoch.accumulate(right, 600, Sum, 1)
            })?;
            // Whoever posts can't be locked.
            team.barrier()?;
            let exposure = window.post(Origins::Group(&[left]))?;
            let access = exposure.start(right, Info::Strong)?;
            access.put(right, 700, round)?;
            strike();
            access.complete()?;
            exposure.wait_all()
        };
        if strikes && fault == "error" {
            // The lock is never given back by a call of the program.
            let lock = window.acquire(right, LockKind::Exclusive, Info::Strong)?;
            lock.put(right, 1, round)?;
            return Err("failed on purpose".into());
        }
        if let Err(error) = one_round(&mut window) {
            break error;
        }
    };
    say(&verdict(team, &outcome));
    Err(outcome.into())
}

fn expect_loss(team: &Team) -> Outcome {
    let begun = Instant::now();
    match team.barrier() {
        Ok(()) => Err("the barrier let a rank pass without the one that left".into()),
        Err(error) => {
            say(&format!("{} after {} ms", verdict(team, &error), begun.elapsed().as_millis()));
            Err(error.into())
        }
    }
}

fn exit(team: &Team, rank: u32, code: i32) -> Outcome {
    team.barrier()?;
    if team.rank() == Rank(rank) {
        std::process::exit(code);
    }
    expect_loss(team)
}

fn fail(team: &Team, rank: u32) -> Outcome {
    team.barrier()?;
    match team.rank() == Rank(rank) {
        true => Err("failed on purpose".into()),
        false => expect_loss(team),
    }
}

fn panic_at(team: &Team, rank: u32) -> Outcome {
    team.barrier()?;
    match team.rank() == Rank(rank) {
        true => panic!("panicked on purpose"),
        false => expect_loss(team),
    }
}

fn leave(team: &Team, rank: u32) -> Outcome {
    team.barrier()?;
    match team.rank() == Rank(rank) {
        true => Ok(()),
        false => expect_loss(team),
    }
}

/// One rank fails, the others do not notice, since they never call the runtime again.
fn stubborn(team: &Team, rank: u32) -> Outcome {
    team.barrier()?;
    if team.rank() == Rank(rank) {
        return Err("failed on purpose".into());
    }
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Runs for a while outside the runtime, so that a test can send signals.
fn sleep(team: &Team, seconds: u64) -> Outcome {
    team.barrier()?;
    say(&format!("rank {} runs as process {}", team.rank(), std::process::id()));
    std::thread::sleep(Duration::from_secs(seconds));
    Ok(())
}

/// The last rank comes late to leave; the others must wait for it in finalize.
fn late(team: &Team, milliseconds: u64) -> Outcome {
    if team.rank().0 + 1 == team.size() {
        std::thread::sleep(Duration::from_millis(milliseconds));
        say("the last rank leaves");
    }
    Ok(())
}

/// The last rank leaves when a file is there.
fn late_until(team: &Team, file: &str) -> Outcome {
    while team.rank().0 + 1 == team.size() && !std::path::Path::new(file).exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    say(&format!("rank {} leaves", team.rank()));
    Ok(())
}

/// Rank 0 leaves at once, the others go on to use its window.
fn serve(team: &Team, milliseconds: u64) -> Outcome {
    let window = Window::<u64>::allocate(team, 8)?;
    if team.rank() == Rank(0) {
        return Ok(());
    }
    let begun = Instant::now();
    let mut rounds = 0_u64;
    while begun.elapsed() < Duration::from_millis(milliseconds) {
        rounds += 1;
        window.lock(Rank(0), LockKind::Exclusive, |epoch| epoch.put(Rank(0), team.rank().index(), rounds))?;
        let seen =
            window.lock(Rank(0), LockKind::Shared, |epoch| epoch.get_value(Rank(0), team.rank().index()))?;
        if seen != rounds {
            return Err(format!("put {rounds} and got {seen}").into());
        }
    }
    say(&format!("rank {} was served {rounds} times", team.rank()));
    Ok(())
}

/// Rank 1 outlives the process that the launcher watches for it, and writes.
fn outlive(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let refused = Window::<u64>::allocate(team, 1)?;
    if team.rank() == Rank(1) {
        let access = window.start(Rank(0), Info::Strong)?;
        let watched = std::env::var("WATCHED")?;
        Command::new("kill").args(["-KILL", &watched]).status()?;
        while refused.load(0)? == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        access.put(Rank(0), 0, 7)?;
        std::process::exit(0);
    }
    let lost = window.post(Origins::Any)?.wait(1);
    say(&format!("wait: {:?}", lost.map_err(|error| error.kind())));
    say(&format!("view: {:?}", window.local().map(|_| ()).map_err(|error| error.kind())));
    refused.lock(Rank(1), LockKind::Exclusive, |epoch| epoch.put(Rank(1), 0, 1))?;
    let begun = Instant::now();
    let seen = loop {
        match window.local() {
            Ok(view) => break view[0],
            Err(error) if Duration::from_secs(60) < begun.elapsed() => return Err(error.into()),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    say(&format!("then: {seen}"));
    Ok(())
}

/// The last rank comes only when the others have given up.
fn stalled(team: &Team) -> Outcome {
    let given_up = Window::<u64>::allocate(team, 1)?;
    let last = Rank(team.size() - 1);
    if team.rank() == last {
        while given_up.load(0)? + 1 < u64::from(team.size()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        return Ok(());
    }
    // Whoever comes after the first has given up is refused, so the limit leaves them time to come.
    match rma::private::testing::with_limit(team, Duration::from_secs(3), || team.barrier()) {
        Ok(()) => Err("the barrier let a rank pass alone".into()),
        Err(error) => {
            say(&verdict(team, &error));
            given_up.lock(last, LockKind::Shared, |epoch| epoch.accumulate(last, 0, Sum, 1))?;
            Ok(())
        }
    }
}

/// Rank 0 comes for a broadcast, the others for a barrier.
fn mismatch(team: &Team) -> Outcome {
    let result = match team.rank() {
        Rank(0) => team.broadcast(Rank(0), &mut [1_u8, 2, 3]),
        _ => team.barrier(),
    };
    match result {
        Ok(()) => Err("different calls matched".into()),
        Err(error) => {
            say(&verdict(team, &error));
            Ok(())
        }
    }
}

/// A value that every rank can compute for every other.
fn value(rank: u32, at: usize) -> u64 {
    (u64::from(rank) + 3).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(at as u32 % 64) ^ at as u64
}

fn check<T: PartialEq + std::fmt::Debug>(what: &str, got: &[T], expected: &[T]) -> Outcome {
    match got == expected {
        true => Ok(()),
        false => {
            let at = got.iter().zip(expected).position(|(got, expected)| got != expected);
            Err(format!("{what}: lengths {} and {}, first difference at {at:?}", got.len(), expected.len())
                .into())
        }
    }
}

/// Every collective call against a serial result, in several sizes, the largest of which take many rounds.
fn collectives(team: &Team) -> Outcome {
    let (me, size) = (team.rank().0, team.size());
    for len in [0, 1, 7, 1_000, 100_003] {
        let own = |rank: u32| -> Vec<u64> { (0..len).map(|at| value(rank, at)).collect() };
        for root in team.ranks() {
            let mut buffer = if team.rank() == root { own(me) } else { vec![0; len] };
            team.broadcast(root, &mut buffer)?;
            check("broadcast", &buffer, &own(root.0))?;
            if 1_000 < len && root == Rank(1) {
                break;
            }
        }
        let mut sum = own(me);
        team.allreduce(&mut sum, Sum)?;
        let serial = |combine: fn(u64, u64) -> u64| -> Vec<u64> {
            (0..len)
                .map(|at| (1..size).fold(value(0, at), |all, rank| combine(all, value(rank, at))))
                .collect()
        };
        check("sum", &sum, &serial(u64::wrapping_add))?;
        let mut lowest = own(me);
        team.allreduce(&mut lowest, Min)?;
        check("min", &lowest, &serial(u64::min))?;
        let mut bits = own(me);
        team.allreduce(&mut bits, Xor)?;
        check("xor", &bits, &serial(|a, b| a ^ b))?;
        // Lengths differ by rank, and one rank brings nothing.
        let part = |rank: u32| -> Vec<u16> {
            own(rank).iter().take(len * rank as usize / 8).map(|&v| v as u16).collect()
        };
        let gathered = team.gather(Rank(size - 1), &part(me))?;
        match gathered {
            Some(all) => check("gather", &all, &(0..size).flat_map(part).collect::<Vec<_>>())?,
            None if me + 1 < size => {}
            None => return Err("the root of a gather got nothing".into()),
        }
    }
    // A sum of floats is combined in the order of ranks: the same bits as a serial loop, though not associative.
    let float = |rank: u32| (f64::from(rank) + 1.0).recip() * 1e15_f64.powi(rank as i32 % 3);
    let mut sums = [float(me), f64::from(me)];
    team.allreduce(&mut sums, Sum)?;
    let serial = (1..size).fold(float(0), |all, rank| all + float(rank));
    check("float sum", &[sums[0].to_bits()], &[serial.to_bits()])?;
    let mut small = [me as i8 - 3, 2];
    team.allreduce(&mut small, Max)?;
    check("i8 max", &small, &[size as i8 - 4, 2])?;
    let mut product = [f32::from(me as u16 + 1)];
    team.allreduce(&mut product, Prod)?;
    check("f32 product", &product, &[(1..=size as u16).map(f32::from).product()])?;
    teams(team)?;
    say(&format!("rank {me} is ok"));
    Ok(())
}

/// Sub-teams: even and odd ranks in reverse order, a duplicate, one rank left out.
fn teams(team: &Team) -> Outcome {
    let (me, size) = (team.rank().0, team.size());
    for _ in 0..20 {
        let Some(half) = team.split(Some(me % 2), -i64::from(me))? else {
            return Err("a member with a color got no team".into());
        };
        let expected: Vec<u32> = (0..size).rev().filter(|rank| rank % 2 == me % 2).collect();
        let members = half.gather(Rank(0), &[me])?;
        if half.rank() == Rank(0) {
            check("members of a half", &members.unwrap_or_default(), &expected)?;
        }
        // Barriers of the halves are independent of each other: the counts differ.
        for _ in 0..=me % 2 {
            half.barrier()?;
        }
        let copy = half.duplicate()?;
        let mut sum = [u64::from(me)];
        copy.allreduce(&mut sum, Sum)?;
        check("sum of a half", &sum, &[expected.iter().map(|&rank| u64::from(rank)).sum()])?;
        if copy.id() == half.id() || half.id() == team.id() {
            return Err("two teams have one identity".into());
        }
        let some = team.split((me != 0).then_some(7), 0)?;
        match some {
            None if me == 0 => {}
            Some(some) if me != 0 && some.size() == size - 1 && some.rank() == Rank(me - 1) => {
                some.barrier()?
            }
            _ => return Err("a split left out the wrong rank".into()),
        }
        let mut ids = [copy.id()];
        copy.allreduce(&mut ids, Max)?;
        check("identity", &ids, &[copy.id()])?;
    }
    Ok(())
}

/// Makes teams until the memory is short.
fn grow(team: &Team) -> Outcome {
    let mut teams = Vec::new();
    loop {
        match team.duplicate() {
            Ok(copy) => teams.push(copy),
            Err(error) => {
                say(&verdict(team, &error));
                return Ok(());
            }
        }
        if 1_000 < teams.len() {
            return Err("the memory has no end".into());
        }
    }
}

/// Everybody waits for rank 0, which sleeps; the waiters report the processor time that the wait took.
fn idle(team: &Team, milliseconds: u64) -> Outcome {
    team.barrier()?;
    let before = cpu_ms()?;
    if team.rank() == Rank(0) {
        std::thread::sleep(Duration::from_millis(milliseconds));
    }
    team.barrier()?;
    say(&format!("rank {} used {} ms", team.rank(), cpu_ms()? - before));
    Ok(())
}

/// Processor time of this process, in steps of 10 ms.
fn cpu_ms() -> Result<u64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    Ok((ticks(11) + ticks(12)) * 10)
}

/// Measures the barrier: the median of 11 batches.
fn time(team: &Team, count: u32) -> Outcome {
    let mut batches: Vec<f64> = (0..11)
        .map(|_| {
            team.barrier()?;
            let begun = Instant::now();
            for _ in 0..count {
                team.barrier()?;
            }
            Ok(begun.elapsed().as_secs_f64() / f64::from(count) * 1e6)
        })
        .collect::<rma::Result<_>>()?;
    batches.sort_by(f64::total_cmp);
    if team.rank() == Rank(0) {
        let (best, median) = (batches[0], batches[batches.len() / 2]);
        say(&format!("barrier\t{}\t{median:.3}\tus\tbest {best:.3}", team.size()));
    }
    Ok(())
}
