//! Files that a run writes, `.npy` arrays that it reads, the command line of an emitted program, and the stream of
//! events to the driver. Never communicates with other ranks.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use super::numbers::Value;
use super::space::{AXES, Level, Shape};

/// Names the socket on which the driver listens for events.
pub const EVENTS_VARIABLE: &str = "RMA_DSL_EVENTS";

/// The header of a `.npy` file, version 1.0.
pub fn npy_header(type_code: &str, points: &[i64]) -> Vec<u8> {
    let sizes: Vec<String> = points.iter().map(i64::to_string).collect();
    let comma = if points.len() == 1 { "," } else { "" };
    let mut text = format!(
        "{{'descr': '{type_code}', 'fortran_order': False, 'shape': ({}{comma}), }}",
        sizes.join(", ")
    );
    // The array starts at a multiple of 64 bytes; the magic, version and length take ten.
    while !(10 + text.len() + 1).is_multiple_of(64) {
        text.push(' ');
    }
    text.push('\n');
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend_from_slice(&(text.len() as u16).to_le_bytes());
    header.extend_from_slice(text.as_bytes());
    header
}

/// Writes a file under its final name only when all of it is written.
pub fn write_whole(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), String> {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    let partial = PathBuf::from(name);
    let written = File::create(&partial).and_then(|file| {
        let mut out = BufWriter::with_capacity(1 << 20, file);
        write(&mut out)?;
        out.into_inner()?;
        std::fs::rename(&partial, path)
    });
    written.map_err(|error| {
        let _ = std::fs::remove_file(&partial); // The error at hand is the one that matters.
        format!("cannot write {}: {error}", path.display())
    })
}

/// Writes a field as a `.npy` file.
pub fn write_npy<T: Value>(path: &Path, points: &[i64], values: &[T]) -> Result<(), String> {
    write_whole(path, |out| {
        out.write_all(&npy_header(T::NPY, points))?;
        write_values(out, values)
    })
}

fn write_values<T: Value>(out: &mut dyn Write, values: &[T]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(8 << 10);
    for part in values.chunks(1 << 10) {
        bytes.clear();
        for value in part {
            value.append_bytes(&mut bytes);
        }
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// Reads this rank's points of a `.npy` file.
pub fn read_npy<T: Value>(
    name: &str,
    shape: &Shape,
    n_axes: usize,
    level: &mut Level<T>,
) -> Result<(), String> {
    let fail = |error: io::Error| format!("cannot read {name}: {error}");
    let mut file = File::open(name).map_err(fail)?;
    let mut start = [0; 10];
    file.read_exact(&mut start).map_err(fail)?;
    if !start.starts_with(b"\x93NUMPY") {
        return Err(format!("cannot read {name}: it is no .npy file"));
    }
    let (text_len, text_at) = if start[6] == 1 {
        (u64::from(u16::from_le_bytes([start[8], start[9]])), 10)
    } else {
        let mut more = [0; 2];
        file.read_exact(&mut more).map_err(fail)?;
        (u64::from(u32::from_le_bytes([start[8], start[9], more[0], more[1]])), 12)
    };
    let mut text = String::new();
    (&mut file).take(text_len).read_to_string(&mut text).map_err(fail)?;
    let entry =
        |key: &str| text.split_once(key).map_or("", |(_, rest)| rest.trim_start_matches(['\'', ':', ' ']));
    let type_code = entry("'descr").split('\'').next().unwrap_or("");
    let sizes: Vec<i64> = entry("'shape")
        .trim_start_matches('(')
        .split(')')
        .next()
        .unwrap_or("")
        .split(',')
        .filter_map(|size| size.trim().parse().ok())
        .collect();
    let expected = &shape.points[AXES - n_axes..];
    if type_code != T::NPY || entry("'fortran_order").starts_with("True") {
        return Err(format!("{name} holds elements {type_code}, the field needs {} in C order", T::NPY));
    }
    if sizes != expected {
        return Err(format!("{name} has shape {sizes:?}, the field has {expected:?}"));
    }
    let size = size_of::<T>();
    let mut bytes = vec![0; level.own.row_len() * size];
    for row in level.own.rows() {
        let point = ((row[0] * shape.points[1] + row[1]) * shape.points[2] + row[2]) as u64;
        file.seek(SeekFrom::Start(text_at + text_len + point * size as u64)).map_err(fail)?;
        file.read_exact(&mut bytes).map_err(fail)?;
        let at = level.at(row);
        for (value, bytes) in level.data[at..].iter_mut().zip(bytes.chunks_exact(size)) {
            *value = T::from_le_bytes(bytes).unwrap_or_default();
        }
    }
    Ok(())
}

/// 64-bit FNV-1a.
pub fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// The digest of a field: its values from `lo` to `hi`, first index slowest, as little-endian bytes.
pub fn digest<T: Value>(shape: &Shape, values: &[T], interior: super::space::Region) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut bytes = Vec::new();
    for row in interior.rows() {
        let at = ((row[0] * shape.points[1] + row[1]) * shape.points[2] + row[2]) as usize;
        bytes.clear();
        for value in &values[at..at + interior.row_len()] {
            value.append_bytes(&mut bytes);
        }
        hash = fnv1a(hash, &bytes);
    }
    hash
}

/// What the driver wants to know while the program runs. Without a driver nothing is sent.
///
/// Each event is a line of words; a `frame` is followed by its values, a little-endian f32 per point.
#[derive(Default)]
pub struct Events {
    stream: Option<BufWriter<UnixStream>>,
}

impl Events {
    /// Connects to the driver, if there is one.
    pub fn connect() -> Result<Events, String> {
        let Some(path) = std::env::var_os(EVENTS_VARIABLE) else { return Ok(Events::default()) };
        let stream = UnixStream::connect(&path)
            .map_err(|error| format!("cannot reach the driver at {}: {error}", Path::new(&path).display()))?;
        Ok(Events { stream: Some(BufWriter::with_capacity(1 << 16, stream)) })
    }

    /// True when someone listens.
    pub fn is_connected(&self) -> bool {
        self.stream.is_some()
    }

    /// A driver that is gone takes the run with it, so that nothing is left behind when it is killed.
    fn send(
        &mut self,
        write: impl FnOnce(&mut BufWriter<UnixStream>) -> io::Result<()>,
    ) -> Result<(), String> {
        match &mut self.stream {
            None => Ok(()),
            Some(stream) => write(stream)
                .and_then(|()| stream.flush())
                .map_err(|error| format!("the driver that started this run is gone: {error}")),
        }
    }

    /// Says how far the run is: completed steps, and what was printed last.
    pub fn progress(&mut self, step: i64, text: &str) -> Result<(), String> {
        self.send(|out| writeln!(out, "progress {step} {text}"))
    }

    /// Names a file that is written.
    pub fn wrote(&mut self, path: &Path) -> Result<(), String> {
        self.send(|out| writeln!(out, "wrote {}", path.display()))
    }

    /// Sends a picture's values. `title` stands above it, the file goes to `path`.
    pub fn frame<T: Value>(&mut self, frame: &Frame<'_>, values: &[T]) -> Result<(), String> {
        self.send(|out| {
            let points: Vec<String> = frame.points.iter().map(i64::to_string).collect();
            writeln!(out, "frame {} {}", frame.colormap, points.join("x"))?;
            writeln!(out, "{}", frame.path.display())?;
            writeln!(out, "{}", frame.title)?;
            for (name, from, to) in frame.axes {
                writeln!(out, "{name} {from} {to}")?;
            }
            let mut bytes = Vec::with_capacity(4 << 10);
            for part in values.chunks(1 << 10) {
                bytes.clear();
                for value in part {
                    bytes.extend_from_slice(&value.to_f32().to_le_bytes());
                }
                out.write_all(&bytes)?;
            }
            Ok(())
        })
    }
}

/// What is drawn besides the values.
pub struct Frame<'a> {
    /// The file to write.
    pub path: &'a Path,
    /// One line above the picture.
    pub title: &'a str,
    /// Name of the colour map.
    pub colormap: &'a str,
    /// Points per axis.
    pub points: &'a [i64],
    /// Name of each axis and its coordinate at the first and last point.
    pub axes: &'a [(&'a str, f64, f64)],
}

/// The command line of an emitted program: `--set NAME=VALUE` and `--decompose CUT`.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    settings: Vec<(String, String)>,
    /// How to cut the grids, if not as the program says.
    pub cut: Option<super::space::Cut>,
}

impl Arguments {
    /// Reads the command line.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Arguments, String> {
        let mut parsed = Arguments::default();
        let mut arguments = arguments.into_iter();
        while let Some(flag) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{flag} needs a value"))?;
            match flag.as_str() {
                "--set" => {
                    let (name, value) = value
                        .split_once('=')
                        .ok_or_else(|| format!("--set {value} is not of the form NAME=VALUE"))?;
                    parsed.settings.push((name.trim().to_string(), value.trim().to_string()));
                }
                "--decompose" => {
                    let cut = super::space::Cut::parse(&value);
                    parsed.cut =
                        Some(cut.ok_or_else(|| format!("--decompose {value} is none of blocks, rows, 2x2"))?);
                }
                _ => {
                    return Err(format!(
                        "unknown option {flag}; known are --set NAME=VALUE and --decompose CUT"
                    ));
                }
            }
        }
        Ok(parsed)
    }

    /// Refuses names that the program does not have.
    pub fn check_names(&self, known: &[&str]) -> Result<(), String> {
        match self.settings.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            Some((name, _)) => Err(format!("no parameter is named {name}; there are: {}", known.join(", "))),
            None => Ok(()),
        }
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.settings.iter().rev().find(|(set, _)| set == name).map(|(_, value)| value.as_str())
    }

    /// An integer parameter.
    pub fn int(&self, name: &str, default: i64, min: Option<i64>, max: Option<i64>) -> Result<i64, String> {
        let value = match self.value(name) {
            Some(text) => text.parse().map_err(|_| format!("{name} = {text} is not an integer"))?,
            None => default,
        };
        in_range(name, value, min, max)
    }

    /// A real parameter.
    pub fn real(&self, name: &str, default: f64, min: Option<f64>, max: Option<f64>) -> Result<f64, String> {
        let value = match self.value(name) {
            Some(text) => text.parse().map_err(|_| format!("{name} = {text} is not a number"))?,
            None => default,
        };
        in_range(name, value, min, max)
    }
}

fn in_range<T: PartialOrd + Value>(
    name: &str,
    value: T,
    min: Option<T>,
    max: Option<T>,
) -> Result<T, String> {
    if min.is_some_and(|min| value < min) || max.is_some_and(|max| value > max) || !value.is_finite_value() {
        let bound = |bound: Option<T>| bound.map_or(String::new(), |bound| bound.show());
        return Err(format!("{name} = {} is outside {}..{}", value.show(), bound(min), bound(max)));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::super::space::{Place, Reach, Region};
    use super::*;

    #[test]
    fn a_written_array_is_read_back_by_parts() {
        let folder = std::env::temp_dir().join(format!("rma-dsl-npy-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.npy");
        let values: Vec<f64> = (0..30).map(f64::from).collect();
        write_npy(&path, &[5, 6], &values).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 128 + 30 * 8);
        let points = [1, 5, 6];
        let shape = Shape {
            grid: points,
            points,
            below: [0, 1, 1],
            above: [0, 1, 1],
            periodic: [false; 3],
            reach: Reach::Star,
        };
        let mut level = Level::<f64>::new(&shape, &Place::of(3, [1, 2, 2])).unwrap();
        let name = path.to_str().unwrap();
        read_npy(name, &shape, 2, &mut level).unwrap();
        assert_eq!(level.own, Region { lo: [0, 2, 3], hi: [1, 5, 6] });
        assert_eq!(level.values(level.own), [15., 16., 17., 21., 22., 23., 27., 28., 29.]);
        let other = Shape { points: [1, 6, 5], grid: [1, 6, 5], ..shape };
        let mut level = Level::<f64>::new(&other, &Place::of(0, [1, 1, 1])).unwrap();
        assert!(
            read_npy(name, &other, 2, &mut level)
                .unwrap_err()
                .contains("has shape [5, 6], the field has [6, 5]")
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let error = write_npy(Path::new("/nonexistent/u.npy"), &[1], &[0.0]).unwrap_err();
        assert!(error.starts_with("cannot write /nonexistent/u.npy: "), "{error}");
        let full = Path::new("/dev/full");
        if full.exists() {
            let written = File::options().write(true).open(full).unwrap().write_all(&[0; 10]);
            assert!(written.is_err());
        }
    }

    #[test]
    fn parameters_are_checked() {
        let arguments = |words: &[&str]| Arguments::parse(words.iter().map(|word| word.to_string()));
        let set = arguments(&["--set", "n=4", "--set", "kappa = 2e-3"]).unwrap();
        assert_eq!(set.int("n", 1, Some(2), None), Ok(4));
        assert_eq!(set.real("kappa", 1.0, None, None), Ok(2e-3));
        assert_eq!(set.int("m", 7, None, None), Ok(7));
        assert_eq!(set.int("n", 1, Some(8), None), Err("n = 4 is outside 8..".into()));
        assert!(set.check_names(&["n"]).unwrap_err().contains("no parameter is named kappa"));
        assert!(arguments(&["--set", "n"]).is_err() && arguments(&["--sat", "n"]).is_err());
        assert!(arguments(&["--set", "n=1.5"]).unwrap().int("n", 1, None, None).is_err());
    }

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a(0xcbf2_9ce4_8422_2325, b"foobar"), 0x8594_4171_f739_67e8);
    }
}
