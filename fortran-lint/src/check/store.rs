//! The trees of the files that are worked on. Never holds more of them than fit into a fixed room: a tree that is needed
//! again is read again, and is the same then.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::Input;
use crate::dataflow::Inlined;
use crate::form::Form;
use crate::model::Model;
use crate::options::Options;
use crate::parse::{Tree, parse_file};
use crate::program::{ProcedureId, Program};

/// Room for texts and for trees that are kept, in bytes.
const BYTES_MAX: usize = 640 << 20;

/// Room for trees beside texts that take all of it.
const TREES_BYTES_MIN: usize = 128 << 20;

/// A file between parsing and checking.
pub(super) struct Parsed {
    pub(super) tree: Tree,
    pub(super) form: Form,
    pub(super) model: Model,
    pub(super) inlined: Inlined,
    /// For whom the calls of each unit are written down in `inlined`; `None` before the procedures of the run are known.
    inlined_for: Option<BTreeMap<u32, ProcedureId>>,
}

impl Parsed {
    /// Writes down what the calls of a unit bring, as far as a procedure can know it.
    pub(super) fn inline(&mut self, program: &Program, id: ProcedureId) {
        let units = self.inlined_for.get_or_insert_default();
        if units.insert(id.unit, id) != Some(id) {
            self.inlined.add_unit(&mut self.tree, &self.model, program, id);
        }
    }

    /// Bytes that it takes, about.
    fn weight(&self) -> usize {
        self.tree.weight() + self.model.weight()
    }
}

/// A tree that is kept, and what it weighed when it came.
type Kept = Option<(usize, Parsed)>;

/// The files of a run.
pub(super) struct Store<'a> {
    inputs: &'a [Input],
    options: &'a Options,
    kept: Vec<Mutex<Kept>>,
    n_bytes: AtomicUsize,
    n_bytes_max: usize,
}

impl<'a> Store<'a> {
    pub(super) fn new(inputs: &'a [Input], options: &'a Options) -> Store<'a> {
        let kept = inputs.iter().map(|_| Mutex::new(None)).collect();
        let n_text: usize = inputs.iter().map(|input| input.bytes.len()).sum();
        let n_bytes_max = BYTES_MAX.saturating_sub(n_text).max(TREES_BYTES_MIN);
        Store { inputs, options, kept, n_bytes: AtomicUsize::new(0), n_bytes_max }
    }

    /// The file, for whoever is going to give it back.
    pub(super) fn take(&self, file: u32) -> Parsed {
        if let Some((weight, parsed)) = self.slot(file).take() {
            // Relaxed: the counter orders nothing; the tree is handed over by the lock.
            self.n_bytes.fetch_sub(weight, Ordering::Relaxed);
            return parsed;
        }
        let Input { path, bytes } = &self.inputs[file as usize];
        let (tree, form) = parse_file(path, bytes, &self.options.reading);
        let model = Model::new(&tree);
        Parsed { tree, form, model, inlined: Inlined::default(), inlined_for: None }
    }

    /// As [`Store::take`], once the procedures of the run are known.
    pub(super) fn take_for(&self, program: &Program, file: u32) -> Parsed {
        let mut parsed = self.take(file);
        if parsed.inlined_for.is_none() {
            parsed.inlined = Inlined::new(&parsed.tree, program);
            parsed.inlined_for = Some(BTreeMap::new());
        }
        parsed
    }

    /// Takes a file back, to keep it if there is room.
    pub(super) fn give(&self, file: u32, parsed: Parsed) {
        let weight = parsed.weight();
        let before = self.n_bytes.fetch_add(weight, Ordering::Relaxed);
        if before + weight > self.n_bytes_max {
            self.n_bytes.fetch_sub(weight, Ordering::Relaxed);
            return;
        }
        *self.slot(file) = Some((weight, parsed));
    }

    /// Makes room: nobody is going to ask for this file again.
    pub(super) fn forget(&self, file: u32) {
        if let Some((weight, _)) = self.slot(file).take() {
            self.n_bytes.fetch_sub(weight, Ordering::Relaxed);
        }
    }

    fn slot(&self, file: u32) -> std::sync::MutexGuard<'_, Kept> {
        self.kept[file as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
