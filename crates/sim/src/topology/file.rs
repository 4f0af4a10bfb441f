//! Topologies from files in any supported format.

use super::TopologyParameters;
use crate::doc::SchemeDoc;
use std::path::Path;

use super::zoo::ZooOptions;
use super::{Topology, TopologyError, gml, graphml, hpcc_text, htsim, toml_file};
use crate::files;
use crate::parameters::Parameters;

/// The formats, each with a line of help.
pub const FORMATS: &[(&str, &str)] = &[
    ("auto", "by the file's extension: .toml, .gml, .graphml or .xml, .txt, .topo"),
    ("toml", "weftline's own format: [[node]] and [[link]] tables"),
    ("gml", "GML of the Topology Zoo"),
    ("graphml", "GraphML of the Topology Zoo"),
    ("hpcc", "text format of the HPCC simulator"),
    ("htsim", "topology file of htsim: tiers by the links of their switches"),
];

/// A file to be read.
#[derive(Debug, Clone, PartialEq)]
pub struct FileSpec {
    /// Path, relative to the scenario's directory; empty: not given.
    pub file: String,
    /// One of [`FORMATS`].
    pub format: &'static str,
    pub zoo: ZooOptions,
}

impl Default for FileSpec {
    fn default() -> FileSpec {
        FileSpec { file: String::new(), format: "auto", zoo: ZooOptions::default() }
    }
}

impl TopologyParameters for FileSpec {
    const DOC: SchemeDoc = SchemeDoc {
        name: "file",
        title: "weftline TOML, Topology Zoo GML or GraphML, HPCC text, htsim",
        source: "GML: Himsolt 1996; GraphML: Brandes et al. 2001; Topology Zoo: Knight et al., JSAC 2011; \
             HPCC's text format; htsim's",
        validation: "Graphs of the Topology Zoo and the HPCC authors' files; the readers are fuzzed.",
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters) -> FileSpec {
        let spec = FileSpec {
            file: p.text("file", None, "Topology file, relative to the scenario.").unwrap_or_default(),
            format: p.choice("format", "auto", FORMATS, "Format of the file."),
            zoo: ZooOptions::read(p),
        };
        if let Ok(format @ ("toml" | "hpcc" | "htsim")) = spec.format() {
            for key in ZooOptions::KEYS {
                p.idle(key, || {
                    format!("has no effect: a file of format {format} has all its hosts and links (gml and graphml have not)")
                });
            }
        }
        spec
    }

    /// Reads the file. The strings are warnings.
    fn build(&self) -> Result<Topology, TopologyError> {
        Ok(self.build_in(Path::new("."))?.0)
    }

    fn build_in(&self, base_dir: &Path) -> Result<(Topology, Vec<String>), TopologyError> {
        if self.file.is_empty() {
            return Err(TopologyError::key("file", "expected the name of a topology file"));
        }
        let format = self.format()?;
        let bytes = files::read(&base_dir.join(&self.file), files::MAX_BYTES)
            .map_err(|message| TopologyError::new(message).in_file(&self.file))?;
        self.parse(format, &bytes)
    }
}

impl FileSpec {
    /// Reads a topology from bytes in a format of [`FORMATS`] other than `auto`.
    pub fn parse(&self, format: &str, bytes: &[u8]) -> Result<(Topology, Vec<String>), TopologyError> {
        match format {
            "toml" => toml_file::read(bytes, &self.file),
            "gml" => gml::read(bytes, &self.file, &self.zoo),
            "graphml" => graphml::read(bytes, &self.file, &self.zoo),
            "hpcc" => hpcc_text::read(bytes, &self.file),
            "htsim" => htsim::read(bytes, &self.file),
            other => {
                let message = crate::parameters::unknown("format", other, FORMATS.iter().map(|f| f.0));
                Err(TopologyError::key("format", message))
            }
        }
    }

    fn format(&self) -> Result<&'static str, TopologyError> {
        if self.format != "auto" {
            return Ok(self.format);
        }
        let extension = Path::new(&self.file).extension().and_then(|e| e.to_str()).unwrap_or("");
        match extension.to_ascii_lowercase().as_str() {
            "toml" => Ok("toml"),
            "gml" => Ok("gml"),
            "graphml" | "xml" => Ok("graphml"),
            "txt" => Ok("hpcc"),
            "topo" => Ok("htsim"),
            _ => {
                let names = FORMATS.iter().skip(1).map(|f| f.0).collect::<Vec<_>>().join(", ");
                let message = format!(
                    "the extension of \"{}\" does not determine the format: set format to one of {names}",
                    self.file
                );
                Err(TopologyError::key("format", message))
            }
        }
    }
}
