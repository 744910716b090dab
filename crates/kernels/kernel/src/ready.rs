//! The kernels that every backend of kernels runs, cell by cell, in a guest of QEMU or
//! on a test machine. It must never boot one.

use crate::making::{Made, ReadyVariant};
use crate::workload::Load;
use locklab_harness::experiment::{Cell, Metric};
use serde_json::{Value, json};
use std::path::Path;

/// The kernels and the load of each cell; a cell has none where its kernels could not be
/// made.
#[derive(Clone, Debug, Default)]
pub struct ReadyCells(Vec<Option<(ReadyVariant, Load)>>);

impl ReadyCells {
    /// Returns the kernels and the load of a cell, by its number.
    #[must_use]
    pub fn get(&self, cell: usize) -> Option<&(ReadyVariant, Load)> {
        self.0.get(cell).and_then(Option::as_ref)
    }

    /// Returns the kernels and loads of the cells that have them.
    pub fn iter(&self) -> impl Iterator<Item = &(ReadyVariant, Load)> {
        self.0.iter().flatten()
    }

    /// Returns the same to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut (ReadyVariant, Load)> {
        self.0.iter_mut().flatten()
    }

    /// Returns each variant once, in the order of the cells.
    #[must_use]
    pub fn variants(&self) -> Vec<&ReadyVariant> {
        let mut variants: Vec<&ReadyVariant> = Vec::new();
        for (variant, _) in self.iter() {
            if variants.iter().all(|other| other.name != variant.name) {
                variants.push(variant);
            }
        }
        variants
    }

    /// Returns the loads of the cells of a variant.
    pub fn loads<'a>(&'a self, variant: &'a str) -> impl Iterator<Item = &'a Load> {
        let of_variant = self.iter().filter(move |(other, _)| other.name == variant);
        of_variant.map(|(_, load)| load)
    }

    /// Returns what decides the samples of each cell: the variant, the load, the images of
    /// both kernels as `image` describes them, and their command lines.
    #[must_use]
    pub fn fingerprint(&self, image: impl Fn(&Path) -> Value) -> Vec<Value> {
        let of_cell = |(variant, load): &(ReadyVariant, Load)| {
            let images = variant.kernels.each_ref().map(|kernel| {
                let images = kernel.images.iter();
                images.map(|path| image(path)).collect::<Vec<_>>()
            });
            let cmdlines = variant.kernels.each_ref().map(|kernel| &kernel.cmdline);
            json!([variant.name, load, images, cmdlines])
        };
        self.iter().map(of_cell).collect()
    }
}

impl FromIterator<Option<(ReadyVariant, Load)>> for ReadyCells {
    fn from_iter<I: IntoIterator<Item = Option<(ReadyVariant, Load)>>>(cells: I) -> Self {
        Self(cells.into_iter().collect())
    }
}

/// Returns the cells with their metrics, and what each of them runs.
#[must_use]
pub fn with_metrics(
    made: Vec<Made<'_>>,
    metrics: impl Fn(&Load) -> Vec<Metric>,
) -> (Vec<Cell>, ReadyCells) {
    let (cells, ready): (Vec<Cell>, Vec<_>) = made
        .into_iter()
        .map(|(cell, load, ready)| {
            let cell = Cell {
                metrics: metrics(load),
                ..cell
            };
            (cell, ready.map(|ready| (ready, load.clone())))
        })
        .unzip();
    (cells, ready.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::making::Kernel;
    use crate::workload::Workload;

    #[test]
    fn cells_of_one_variant_share_its_kernels() {
        let kernel = Kernel {
            images: vec!["a".into(), "b".into()],
            modules: None,
            source: None,
            cmdline: "quiet".into(),
        };
        let variant = |name: &str| ReadyVariant {
            name: name.into(),
            kernels: [kernel.clone(), kernel.clone()],
            builds: None,
        };
        let ready = |name, workload| Some((variant(name), Load::new(workload)));
        let cells: ReadyCells = [
            ready("gcc", Workload::Fstat),
            None,
            ready("gcc", Workload::Boot),
            ready("clang", Workload::Fstat),
        ]
        .into_iter()
        .collect();
        let names: Vec<&str> = cells.variants().iter().map(|v| v.name.as_str()).collect();
        assert_eq!(names, ["gcc", "clang"]);
        assert_eq!(cells.loads("gcc").count(), 2);
        assert!(cells.get(1).is_none() && cells.get(9).is_none());
        let prints = cells.fingerprint(|path| json!(path));
        assert_eq!(prints.len(), 3);
        assert_eq!(prints[0][2], json!([["a", "b"], ["a", "b"]]));
        assert_eq!(prints[0][3], json!(["quiet", "quiet"]));
    }
}
