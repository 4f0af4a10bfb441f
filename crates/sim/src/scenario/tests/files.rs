//! Files that scenarios name.

use super::*;

/// A folder of its own with one file, removed when dropped.
struct Folder(std::path::PathBuf);

impl Folder {
    fn with(file: &str, text: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("weftline-{}-{file}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a writable folder");
        std::fs::write(path.join(file), text).expect("a writable folder");
        Folder(path)
    }

    fn load(&self, text: &str) -> Result<Scenario, ScenarioError> {
        Scenario::load(text, "s.toml", &self.0, &[], None, Hooks::default())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_file_named_like_a_built_in_table_of_sizes_is_not_read_and_not_named() {
    let folder = Folder::with("websearch", "1000 0\n2000 1\n");
    let of =
        |sizes: &str| format!("{STAR}[[workload]]\nkind = \"poisson\"\nsizes = \"{sizes}\"\ncount = 1\n");
    let named = folder.load(&of("websearch")).expect("a table");
    assert!(named.resolved().contains("sizes = \"websearch\""), "{}", named.resolved());
    let file = folder.load(&of("./websearch")).expect("a file");
    assert!(file.resolved().contains(&format!("{}/websearch", folder.0.display())), "{}", file.resolved());
}

#[test]
fn a_trace_may_have_flows_without_an_end_if_the_run_has_one() {
    let rows = "src,dst,size_bytes,start_ns\n0,1,1000,0\n1,2,1125899906842624,5\n";
    let folder = Folder::with("flows.csv", rows);
    let text = format!("{STAR}[[workload]]\nkind = \"trace\"\nfile = \"flows.csv\"\n");
    let error = folder.load(&text).err().expect("a run without an end").to_string();
    let expected = "a flow of 1125899906842624 B sends until the run ends, and the run until its flows have: set run.until to a time";
    assert!(error.contains(&format!("workload.1.file: {expected}")), "{error}");
    folder.load(&format!("{text}[run]\nuntil = \"1ms\"\n")).expect("a run with an end");
}
