//! The C header computes the stored vectors, compiled here with the compiler `cc` (or the one that CC names).

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

fn read(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A number of the vectors in hexadecimal: a string that already is, a number, or nothing.
fn number(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => format!("{:#x}", other.as_u64().unwrap_or(0)),
    }
}

fn place(names: &[&str], value: &Value) -> usize {
    names.iter().position(|name| value == name).unwrap_or(0)
}

fn functions(lines: &mut String) {
    for (name, function) in read("vectors/functions.json").as_object().unwrap() {
        for case in function["cases"].as_array().unwrap() {
            let numbers: Vec<String> = case.as_array().unwrap().iter().map(number).collect();
            writeln!(lines, "{name} {}", numbers.join(" ")).unwrap();
        }
    }
}

fn task(task: &Value) -> String {
    let kinds = ["path", "sample", "maximum", "minimum", "sum", "product", "count", "loop"];
    let layers = task["layers"].as_array().cloned().unwrap_or_default();
    let mut line = format!(
        "task {:x} {} {} {} {:x}",
        place(&kinds, &task["kind"]),
        number(&task["fragments"]),
        number(&task["threshold"]),
        number(&task["baseline"]),
        layers.len()
    );
    for layer in 0..6 {
        let layer = layers.get(layer).unwrap_or(&Value::Null);
        write!(line, " {} {} {}", number(&layer[0]), number(&layer[1]), number(&layer[2])).unwrap();
    }
    let scale = place(&["exact", "additive", "multiplicative"], &task["scale"]);
    let rounding = place(&["nearest", "value", "logarithm"], &task["rounding"]);
    write!(line, " {scale:x} {rounding:x}").unwrap();
    for key in ["bits", "width", "rate", "tolerance"] {
        write!(line, " {}", number(&task[key])).unwrap();
    }
    line
}

fn paths(lines: &mut String) {
    for plan in read("vectors/paths.json")["plans"].as_array().unwrap() {
        writeln!(lines, "plan {}", number(&plan["selector"])).unwrap();
        plan["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .for_each(|entry| writeln!(lines, "{}", task(entry)).unwrap());
        for set in plan["sets"].as_array().unwrap() {
            writeln!(lines, "set {}", number(&set["until"])).unwrap();
            for field in set["fields"].as_array().unwrap() {
                let numbers = ["query", "offset", "bits", "key"].map(|key| number(&field[key]));
                writeln!(lines, "field {}", numbers.join(" ")).unwrap();
            }
        }
        for packet in plan["packets"].as_array().unwrap() {
            for (hop, step) in (1..).zip(packet["hops"].as_array().unwrap()) {
                let looped = u8::from(step["looped"] == true);
                let digest = number(&step["digest"]);
                let values: Vec<String> = step["values"].as_array().unwrap().iter().map(number).collect();
                let packet = number(&packet["packet"]);
                writeln!(lines, "digest {packet} {hop:x} {looped} {digest} {}", values.join(" ")).unwrap();
            }
        }
    }
}

#[test]
fn the_c_twin_computes_the_stored_vectors() {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("check_vectors");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("c/check_vectors.c");
    let flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic"];
    let compiled = Command::new(&compiler).args(flags).arg(&source).arg("-o").arg(&program).status();
    match compiled {
        Err(problem) if std::env::var_os("CI").is_none() => {
            println!("skipped: no C compiler ({compiler}: {problem})");
            return;
        }
        status => assert!(status.unwrap().success(), "{compiler} refuses check_vectors.c"),
    }
    let mut lines = String::new();
    functions(&mut lines);
    paths(&mut lines);
    let mut child = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
