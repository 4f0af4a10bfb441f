//! Runs that are whole, damaged in every place, of an earlier version, and touched later.

use super::*;
use crate::scratch::Scratch;
use proptest::prelude::*;

/// A folder as a run leaves it: what tables hold is of no matter here.
fn run(dir: &Path) {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("scenario.toml"), "name = \"tiny\"\n").unwrap();
    fs::write(dir.join("flows.parquet"), [b"PAR1".as_slice(), &[7; 300], b"PAR1"].concat()).unwrap();
    fs::write(dir.join("series.parquet"), [b"PAR1".as_slice(), &[9; 200], b"PAR1"].concat()).unwrap();
    fs::write(dir.join("summary.json"), format!("{{\"flows\": 3, \"{SUMMARY_KEY}\": \"{KIND}\"}}\n"))
        .unwrap();
    write(dir, true).unwrap();
}

const FILES: [&str; 5] = ["scenario.toml", "flows.parquet", "series.parquet", "summary.json", FILE];

fn error(dir: &Path) -> String {
    match check_folder(dir, None) {
        Err(ResultsError::Damaged(text)) => text,
        other => panic!("expected damage, found {other:?}"),
    }
}

#[test]
fn a_whole_run_is_vouched_for_and_lists_its_files() {
    let dir = Scratch::new();
    run(dir.path());
    let found = check_folder(dir.path(), None).unwrap().unwrap();
    let names: Vec<&str> = found.files.keys().map(String::as_str).collect();
    assert_eq!(names, ["flows.parquet", "scenario.toml", "series.parquet", "summary.json"]);
    assert_eq!(found.files["flows.parquet"].bytes, 308);
    // Other files in the folder are left alone.
    fs::write(dir.join("notes.txt"), "mine").unwrap();
    fs::write(dir.join("mine.parquet"), "mine").unwrap();
    check_folder(dir.path(), None).unwrap();
    check_file(&dir.join("mine.parquet")).unwrap();
}

proptest! {
    #[test]
    fn a_flipped_bit_anywhere_is_noticed(file in 0..FILES.len(), at in any::<prop::sample::Index>(), bit in 0..8u32) {
        let dir = Scratch::new();
        run(dir.path());
        check_folder(dir.path(), None).unwrap();
        let path = dir.join(FILES[file]);
        let mut bytes = fs::read(&path).unwrap();
        let place = at.index(bytes.len());
        bytes[place] ^= 1u8 << bit;
        fs::write(&path, bytes).unwrap();
        prop_assert!(matches!(check_folder(dir.path(), None), Err(ResultsError::Damaged(_))));
    }

    #[test]
    fn a_cut_or_a_longer_file_is_noticed_without_its_digest(file in 0..FILES.len(), bytes in 1..200usize, longer: bool) {
        let dir = Scratch::new();
        run(dir.path());
        let path = dir.join(FILES[file]);
        let mut text = fs::read(&path).unwrap();
        if longer { text.extend(vec![b' '; bytes]) } else { text.truncate(text.len().saturating_sub(bytes)) }
        fs::write(&path, text).unwrap();
        prop_assert!(matches!(check_folder(dir.path(), Some(&[])), Err(ResultsError::Damaged(_))));
    }
}

#[test]
fn a_missing_file_and_one_too_many_are_named() {
    for name in FILES {
        let dir = Scratch::new();
        run(dir.path());
        fs::remove_file(dir.join(name)).unwrap();
        let message = error(dir.path());
        assert!(message.contains(name) && message.contains("no such file"), "{message}");
    }
    let dir = Scratch::new();
    run(dir.path());
    fs::write(dir.join("queues.parquet"), "of another run").unwrap();
    assert!(error(dir.path()).contains("queues.parquet"));
    assert!(check_file(&dir.join("queues.parquet")).is_err());
}

#[test]
fn files_swapped_between_runs_are_noticed() {
    for name in FILES {
        let dir = Scratch::new();
        let (a, b) = (dir.join("a"), dir.join("b"));
        run(&a);
        run(&b);
        fs::write(b.join("scenario.toml"), "name = \"miny\"\n").unwrap();
        fs::write(b.join("summary.json"), format!("{{\"flows\": 4, \"{SUMMARY_KEY}\": \"{KIND}\"}}\n"))
            .unwrap();
        fs::write(b.join("flows.parquet"), [b"PAR1".as_slice(), &[8; 300], b"PAR1"].concat()).unwrap();
        fs::write(b.join("series.parquet"), [b"PAR1".as_slice(), &[8; 200], b"PAR1"].concat()).unwrap();
        write(&b, false).unwrap();
        fs::rename(a.join(name), dir.join("aside")).unwrap();
        fs::rename(b.join(name), a.join(name)).unwrap();
        fs::rename(dir.join("aside"), b.join(name)).unwrap();
        assert!(error(&a).contains("damaged") && error(&b).contains("damaged"), "{name}");
    }
}

#[test]
fn a_folder_of_an_earlier_version_is_read_and_nothing_vouches_for_it() {
    let dir = Scratch::new();
    run(dir.path());
    fs::remove_file(dir.join(FILE)).unwrap();
    fs::write(dir.join("summary.json"), "{\"flows\": 3}\n").unwrap();
    assert_eq!(check_folder(dir.path(), None), Ok(None));
    check_file(&dir.join("flows.parquet")).unwrap();
}

#[test]
fn the_error_says_file_digests_and_what_to_do() {
    let dir = Scratch::new();
    run(dir.path());
    fs::write(dir.join("flows.parquet"), [b"PAR1".as_slice(), &[6; 300], b"PAR1"].concat()).unwrap();
    let message = check_file(&dir.join("flows.parquet")).unwrap_err().to_string();
    let expected = seal::hex(seal::digest(&[b"PAR1".as_slice(), &[7; 300], b"PAR1"].concat()));
    let found = seal::hex(seal::digest(&[b"PAR1".as_slice(), &[6; 300], b"PAR1"].concat()));
    for part in ["flows.parquet", "308 bytes", &expected, &found, "run its scenario again"] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[test]
fn a_file_that_was_made_later_counts_from_then_on() {
    let dir = Scratch::new();
    run(dir.path());
    let page = dir.join("report.html");
    for text in ["one", "another"] {
        fs::write(&page, text).unwrap();
        cover(&page, false, false).unwrap();
        check_folder(dir.path(), None).unwrap();
    }
    fs::write(&page, "touched").unwrap();
    // A page is derived: a run without it, or with half of it, is whole.
    check_folder(dir.path(), None).unwrap();
    assert!(check_file(&page).is_err());
    let bare = Scratch::new();
    fs::write(bare.join("points.csv"), "seed\n1\n").unwrap();
    cover(&bare.join("points.csv"), false, false).unwrap();
    assert!(!bare.join(FILE).exists());
    cover(&bare.join("points.csv"), true, true).unwrap();
    fs::write(bare.join("points.csv"), "seed\n2\n").unwrap();
    assert!(check_file(&bare.join("points.csv")).is_err());
}

#[test]
fn a_stamp_changes_with_every_touch_and_waits_until_the_clock_has_moved() {
    let dir = Scratch::new();
    run(dir.path());
    assert_eq!(stamp(dir.path()), None, "just written");
    let wait = || std::thread::sleep(SETTLED_AFTER * 2);
    wait();
    let first = stamp(dir.path());
    assert!(first.is_some() && stamp(dir.path()) == first);
    check_folder(dir.path(), None).unwrap();
    let path = dir.join("flows.parquet");
    let times = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, [b"PAR1".as_slice(), &[6; 300], b"PAR1"].concat()).unwrap();
    // A file whose old time is restored was changed all the same.
    File::options().write(true).open(&path).unwrap().set_modified(times).unwrap();
    assert!(check_file(&path).is_err(), "it was hashed before in this process");
    wait();
    assert_ne!(stamp(dir.path()), first);
    fs::write(&path, [b"PAR1".as_slice(), &[7; 300], b"PAR1"].concat()).unwrap();
    check_file(&path).unwrap();
}

#[test]
fn a_damaged_table_of_a_run_is_not_decoded() {
    let dir = Scratch::new();
    run(dir.path());
    fs::write(dir.join("flows.parquet"), [b"PAR1".as_slice(), &[6; 300], b"PAR1"].concat()).unwrap();
    let path = dir.join("flows.parquet");
    assert!(matches!(crate::parquet_read::columns(&path), Err(ResultsError::Damaged(_))));
    assert!(matches!(crate::parquet_read::stream(&path, None), Err(ResultsError::Damaged(_))));
    assert!(matches!(crate::slowdown::read(dir.path()), Err(ResultsError::Damaged(_))));
    fs::remove_file(dir.join("series.parquet")).unwrap();
    assert!(matches!(crate::series::read(dir.path(), "queue_bytes", 0.0, 0), Err(ResultsError::Damaged(_))));
}
