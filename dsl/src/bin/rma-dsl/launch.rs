//! Runs a built program through the launcher and serves its events: progress on the terminal, pictures as PNG files.
//! Never looks at what a program computes.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use rma_dsl::back::rust::prelude::files::EVENTS_VARIABLE;
use rma_dsl::picture::{Picture, draw};

/// A run.
pub(crate) struct Job<'a> {
    /// The launcher.
    pub(crate) launcher: &'a Path,
    /// The program.
    pub(crate) program: &'a Path,
    /// Arguments of the program.
    pub(crate) arguments: Vec<OsString>,
    /// Number of ranks.
    pub(crate) ranks: u32,
    /// Name of the transport.
    pub(crate) transport: &'a str,
    /// Time limit of blocking calls, in seconds.
    pub(crate) timeout: Option<f64>,
    /// Steps after which the run ends at the latest, if that is known.
    pub(crate) steps_max: Option<u64>,
    /// Files of the program's probes.
    pub(crate) tables: Vec<PathBuf>,
    /// Where the program leaves its fields for comparison.
    pub(crate) dump: Option<&'a Path>,
}

/// Longest path of a socket.
const SOCKET_PATH_MAX: usize = 100;
/// Largest picture: values of one frame.
const FRAME_POINTS_MAX: usize = 1 << 30;

/// Most files that are named when a run has ended.
const NAMES_MAX: usize = 8;
/// Times of files are older than the clock by less than this.
const FILE_TIME_LAG: Duration = Duration::from_millis(20);

/// Refuses to start where no file can be written.
///
/// # Errors
/// A sentence with the folder.
pub(crate) fn can_write_here() -> Result<(), String> {
    let path = PathBuf::from(format!(".rma-dsl-{}", std::process::id()));
    let written = fs::File::options().write(true).create_new(true).open(&path);
    let removed = written.and_then(|file| {
        drop(file);
        fs::remove_file(&path)
    });
    removed.map_err(|error| {
        let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        format!(
            "cannot write into the folder {}: {error}; a run writes its files where it is started, so start it in a \
             folder that you can write to",
            folder.display()
        )
    })
}

/// Runs the job to its end, and names the files that it wrote; gives its exit status.
///
/// # Errors
/// A sentence, when the job could not be started or a picture could not be written.
pub(crate) fn run(job: &Job<'_>) -> Result<u8, String> {
    let start = SystemTime::now() - FILE_TIME_LAG;
    let folder = Folder::new()?;
    let socket = folder.path.join("events");
    let listener = UnixListener::bind(&socket)
        .map_err(|error| format!("cannot listen at {}: {error}", socket.display()))?;
    let bar = progress_bar(job.steps_max);
    let mut command = Command::new(job.launcher);
    command.arg("-n").arg(job.ranks.to_string()).arg("--transport").arg(job.transport);
    if let Some(seconds) = job.timeout {
        command.arg("--timeout").arg(seconds.to_string());
    }
    command.arg(job.program).args(&job.arguments).env(EVENTS_VARIABLE, &socket);
    if let Some(dump) = job.dump {
        command.env("RMA_DSL_DUMP", dump);
    }
    // Lines of the program and the bar share the terminal, so both go through here.
    if bar.is_some() {
        command.stdout(Stdio::piped());
    }
    let mut child = command
        .spawn()
        .map_err(|error| format!("cannot run the launcher {}: {error}", job.launcher.display()))?;
    let lines = child.stdout.take().map(|stdout| {
        let bar = bar.clone();
        thread::spawn(move || pass_on(stdout, bar))
    });
    let (sender, receiver) = mpsc::channel();
    let events = {
        let (bar, folder) = (bar.clone(), folder.path.clone());
        thread::spawn(move || {
            let result = serve(&listener, &folder, bar);
            // The main thread may have given up waiting.
            let _ = sender.send(result);
        })
    };
    let status = child.wait().map_err(|error| format!("cannot wait for the launcher: {error}"))?;
    if let Some(lines) = lines {
        let _ = lines.join(); // It only passes lines on.
    }
    // A program that ended before it said anything leaves the listener waiting.
    drop(UnixStream::connect(&socket));
    let _ = events.join();
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    let Served { mut files, drawn } = receiver.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
    let is_new = |path: &PathBuf| {
        fs::metadata(path).and_then(|found| found.modified()).is_ok_and(|modified| start <= modified)
    };
    files.extend(job.tables.iter().filter(|path| is_new(path)).cloned());
    if let Some(line) = files_line(&files) {
        eprintln!("{line}");
    }
    match status.code() {
        Some(0) => drawn.map(|()| 0),
        Some(code) => Ok(u8::try_from(code).unwrap_or(1)),
        None => Err(format!("the launcher was killed: {status}")),
    }
}

/// One line that names files; the first and the last ones if they are many.
fn files_line(files: &[PathBuf]) -> Option<String> {
    let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    match names.as_slice() {
        [] => None,
        [first, second, .., last] if NAMES_MAX < names.len() => {
            Some(format!("wrote {} files: {first}, {second}, …, {last}", names.len()))
        }
        names => Some(format!("wrote {}", names.join(", "))),
    }
}

fn progress_bar(steps_max: Option<u64>) -> Option<ProgressBar> {
    if !io::stderr().is_terminal() {
        return None;
    }
    let bar = match steps_max {
        Some(steps) => ProgressBar::new(steps),
        None => ProgressBar::new_spinner(),
    };
    bar.set_draw_target(ProgressDrawTarget::stderr());
    let template = match steps_max {
        Some(_) => "{bar:32.cyan/blue} step {pos}/{len}  {speed}  {elapsed}  {msg}",
        None => "{spinner} step {pos}  {speed}  {elapsed}  {msg}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        let speed = |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let _ = write!(text, "{:.0} steps/s", state.per_sec()); // A line on the terminal, no more.
        };
        bar.set_style(style.with_key("speed", speed));
    }
    Some(bar)
}

/// Copies lines to standard output, above the bar.
fn pass_on(stdout: impl Read, bar: Option<ProgressBar>) {
    for line in BufReader::new(stdout).split(b'\n') {
        let Ok(mut line) = line else { return };
        line.push(b'\n');
        let write = || {
            let mut out = io::stdout().lock();
            // A reader that has gone away is no reason to end the run.
            let _ = out.write_all(&line).and_then(|()| out.flush());
        };
        match &bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

/// What the events of a run came to.
struct Served {
    /// Files that were written, in order.
    files: Vec<PathBuf>,
    /// The first picture that could not be written.
    drawn: Result<(), String>,
}

impl Default for Served {
    fn default() -> Served {
        Served { files: Vec::new(), drawn: Ok(()) }
    }
}

/// Takes events until the program ends.
fn serve(listener: &UnixListener, folder: &Path, bar: Option<ProgressBar>) -> Served {
    let mut served = Served::default();
    let Ok((stream, _)) = listener.accept() else { return served };
    // Nobody else connects, and a driver that is killed leaves nothing behind.
    let _ = fs::remove_dir_all(folder);
    let mut events = BufReader::with_capacity(1 << 20, stream);
    loop {
        let mut line = String::new();
        match events.read_line(&mut line) {
            Ok(n) if 0 < n && line.ends_with('\n') => {}
            _ => return served,
        }
        let words = line.trim_end();
        if let Some(rest) = words.strip_prefix("progress ") {
            let (step, text) = rest.split_once(' ').unwrap_or((rest, ""));
            if let (Some(bar), Ok(step)) = (&bar, step.parse()) {
                bar.set_position(step);
                bar.set_message(text.to_string());
            }
        } else if let Some(path) = words.strip_prefix("wrote ") {
            served.files.push(PathBuf::from(path));
        } else if let Some(rest) = words.strip_prefix("frame ") {
            // A program that dies in the middle of a frame says so itself.
            let Some((path, picture)) = read_frame(rest, &mut events) else { return served };
            match draw(&picture).and_then(|bytes| write_whole(&path, &bytes)) {
                Ok(()) => served.files.push(path),
                Err(error) if served.drawn.is_ok() => served.drawn = Err(error),
                Err(_) => {}
            }
        }
    }
}

fn read_frame(head: &str, events: &mut impl BufRead) -> Option<(PathBuf, Picture)> {
    let (colormap, points) = head.split_once(' ')?;
    let points: Vec<usize> = points.split('x').map(|n| n.parse().ok()).collect::<Option<_>>()?;
    let mut line = || {
        let mut line = String::new();
        events.read_line(&mut line).ok()?;
        Some(line.strip_suffix('\n')?.to_string())
    };
    let path = PathBuf::from(line()?);
    let title = line()?;
    let mut axes = Vec::new();
    for _ in &points {
        let text = line()?;
        let mut words = text.split(' ');
        axes.push((words.next()?.to_string(), words.next()?.parse().ok()?, words.next()?.parse().ok()?));
    }
    let n =
        points.iter().try_fold(1usize, |n, more| n.checked_mul(*more)).filter(|n| *n <= FRAME_POINTS_MAX)?;
    let mut bytes = vec![0; n * 4];
    events.read_exact(&mut bytes).ok()?;
    let values =
        bytes.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
    Some((path, Picture { title, colormap: colormap.to_string(), points, axes, values }))
}

fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), String> {
    rma_dsl::back::rust::prelude::files::write_whole(path, |out| out.write_all(bytes))
}

/// A private folder that goes away with its owner.
pub(crate) struct Folder {
    /// Where it is.
    pub(crate) path: PathBuf,
}

impl Folder {
    /// A new folder that only this user can enter.
    ///
    /// # Errors
    /// A sentence with the path.
    pub(crate) fn new() -> Result<Folder, String> {
        use std::os::unix::fs::DirBuilderExt;
        let mut base = std::env::temp_dir();
        if SOCKET_PATH_MAX < base.as_os_str().len() + 60 {
            base = PathBuf::from("/tmp");
        }
        let nanos = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |time| time.as_nanos());
        let path = base.join(format!("rma-dsl-{}-{nanos}", std::process::id()));
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|error| format!("cannot create the folder {}: {error}", path.display()))?;
        Ok(Folder { path })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path); // What remains is in the system's folder for temporary files.
    }
}
