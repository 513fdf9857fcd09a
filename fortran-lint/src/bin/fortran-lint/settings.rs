//! Which settings hold for which path: the nearest `fortran-lint.toml` above it, and over that the command line. Never
//! reads a source.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fortran_lint::check::Input;
use fortran_lint::config::{Codes, Config, FILE_NAME, code, definition, procedure};
use fortran_lint::form::Form;
use fortran_lint::options::Options;
use rma_source::{SourceFile, SourceMap, render};

use super::disk::Disk;
use super::{CheckArguments, STDIN};

/// Paths that share their settings, and are checked together.
pub(super) struct Group {
    /// What was named on the command line.
    pub(super) paths: Vec<PathBuf>,
    /// Settings for the check.
    pub(super) options: Options,
    /// Patterns of files that are passed over in folders.
    pub(super) exclude: Vec<String>,
    /// The folder that those patterns are relative to.
    pub(super) folder: PathBuf,
    /// The baseline.
    pub(super) baseline: Option<PathBuf>,
    /// The files, once they are read.
    pub(super) inputs: Vec<Input>,
}

/// The paths of the command line, by their configuration, in the order of their first path.
pub(super) fn groups(arguments: &CheckArguments) -> Result<Vec<Group>, String> {
    let mut groups: Vec<(Option<PathBuf>, Vec<PathBuf>)> = Vec::new();
    for path in &arguments.paths {
        let config = match &arguments.config {
            Some(config) => Some(config.clone()),
            None => nearest(arguments, path),
        };
        match groups.iter_mut().find(|(own, _)| *own == config) {
            Some((_, paths)) => paths.push(path.clone()),
            None => groups.push((config, vec![path.clone()])),
        }
    }
    groups.into_iter().map(|(config, paths)| group(arguments, config, paths)).collect()
}

/// The configuration file in the folder of a path, or in the nearest one above.
fn nearest(arguments: &CheckArguments, path: &Path) -> Option<PathBuf> {
    let path = match path.as_os_str() == STDIN {
        true => arguments.stdin_filename.as_deref().unwrap_or(Path::new("stdin")),
        false => path,
    };
    let absolute = std::path::absolute(path).ok()?;
    let folders = absolute.ancestors().skip(usize::from(!absolute.is_dir()));
    folders.map(|folder| folder.join(FILE_NAME)).find(|file| file.is_file())
}

fn group(arguments: &CheckArguments, file: Option<PathBuf>, paths: Vec<PathBuf>) -> Result<Group, String> {
    let mut options = Options::default();
    let mut folder = PathBuf::from(".");
    let mut config = Config::default();
    if let Some(file) = &file {
        config = read(file)?;
        folder = std::path::absolute(file)
            .ok()
            .and_then(|file| file.parent().map(Path::to_path_buf))
            .unwrap_or(folder);
        config.apply(&mut options);
    }
    overlay(arguments, &mut options)?;
    let here = std::env::current_dir().unwrap_or_default();
    options.reading.forms =
        config.forms.iter().flat_map(|(pattern, form)| patterns(pattern, *form, &folder, &here)).collect();
    options.reading.include_paths = arguments
        .include
        .iter()
        .cloned()
        .chain(config.include.iter().map(|include| shown(&folder.join(include), &here)))
        .map(|path| path.display().to_string())
        .collect();
    options.reading.files = Arc::new(Disk::new(&paths));
    let own_baseline = || config.baseline.as_ref().map(|baseline| folder.join(baseline));
    let baseline = match &arguments.write_baseline {
        Some(_) => None,
        None => arguments.baseline.clone().or_else(own_baseline),
    };
    Ok(Group { paths, options, exclude: config.exclude, folder, baseline, inputs: Vec::new() })
}

/// What the command line says comes before what a file says.
fn overlay(arguments: &CheckArguments, options: &mut Options) -> Result<(), String> {
    let codes = |list: &[String], which| -> Result<Vec<String>, String> {
        list.iter()
            .map(|text| match code(text, which) {
                Ok(code) => Ok(code.to_string()),
                Err((why, None)) => Err(why),
                Err((why, Some(meant))) => Err(format!("{why}; `{meant}` was probably meant")),
            })
            .collect()
    };
    if !arguments.select.is_empty() {
        options.select = codes(&arguments.select, Codes::WithReasons)?;
    }
    if !arguments.ignore.is_empty() {
        options.ignore = codes(&arguments.ignore, Codes::RulesOnly)?;
    }
    arguments.dummy.iter().try_for_each(|name| procedure(name))?;
    arguments.define.iter().try_for_each(|text| definition(text))?;
    options.min_level = arguments.min_level.unwrap_or(options.min_level);
    options.standard = arguments.std.unwrap_or(options.standard);
    options.binding = arguments.binding.unwrap_or(options.binding);
    options.dummies.extend(arguments.dummy.iter().cloned());
    options.reading.form = arguments.form;
    options.reading.macros.extend(arguments.define.iter().cloned());
    Ok(())
}

fn read(file: &Path) -> Result<Config, String> {
    let shown = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| format!("cannot read {shown}: {error}"))?;
    Config::parse(&text).map_err(|diagnostic| {
        let mut map = SourceMap::new();
        map.add(SourceFile::new(shown, text));
        let rendered = render::text(&map, &diagnostic, render::Colour::Never);
        // Whoever prints it begins with that word.
        rendered.strip_prefix("error[config]: ").unwrap_or(&rendered).to_string()
    })
}

/// A pattern relative to the configuration's folder, as paths are shown: relative to here, or absolute.
fn patterns(pattern: &str, form: Form, folder: &Path, here: &Path) -> Vec<(String, Form)> {
    if !pattern.contains('/') {
        return vec![(pattern.to_string(), form)];
    }
    let absolute = folder.join(pattern).display().to_string();
    let mut all = vec![absolute.clone()];
    let here = here.display().to_string();
    match absolute.strip_prefix(&here).and_then(|rest| rest.strip_prefix('/')) {
        Some(relative) => all.push(relative.to_string()),
        // The folder is above: what is left of the pattern below here.
        None => {
            let inner = Path::new(&here).strip_prefix(folder).map(|inner| format!("{}/", inner.display()));
            let rest = inner.ok().and_then(|inner| pattern.strip_prefix(&inner).map(str::to_string));
            all.extend(rest.or_else(|| pattern.starts_with("**/").then(|| pattern.to_string())));
        }
    }
    all.into_iter().map(|pattern| (pattern, form)).collect()
}

/// A path as messages show it: relative where it is below here.
fn shown(path: &Path, here: &Path) -> PathBuf {
    path.strip_prefix(here).map_or_else(|_| path.to_path_buf(), Path::to_path_buf)
}
