//! The store in a folder.

use crate::conformance::{self, case};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use tilewright_repository::{Embedded, Fault, Key, Repository};

fn open(folder: &Path) -> Embedded {
    Embedded::open(folder).expect("the folder can be written")
}

fn here() -> Key {
    Key::new("set", "device").expect("a sound name")
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(folder.join("set/device")).unwrap().map(|e| e.unwrap().path());
    all.filter(|p| p.extension().is_some_and(|e| e == "seg")).collect()
}

#[test]
fn it_is_a_repository() {
    let folder = tempfile::tempdir().unwrap();
    conformance::keeps_what_it_is_given(&mut || Box::new(open(folder.path())));
    conformance::refuses_poison(&mut open(folder.path()));
    conformance::gives_training_data(&mut open(folder.path()));
    let other = tempfile::tempdir().unwrap();
    conformance::gives_configurations(&mut || Box::new(open(other.path())));
}

#[test]
fn an_unfinished_line_is_left_out_at_every_length() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = open(folder.path());
    for n in 0..3 {
        writer.append(&here(), &case(n as f32, &[("a", Some(1.0))])).unwrap();
    }
    drop(writer);
    let path = segments(folder.path()).remove(0);
    let whole = fs::read(&path).unwrap();
    let begun = whole.iter().position(|b| *b == b'\n').unwrap() + 1;
    let mut counts = Vec::new();
    for length in 0..=whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let mut found = open(folder.path());
        if length < begun {
            // No kill leaves that: the first line is there before the name is.
            let damaged = found.read(&here()).unwrap_err();
            assert!(damaged.is_damage() && damaged.place == path.display().to_string(), "{damaged}");
            continue;
        }
        counts.push(found.read(&here()).unwrap().len());
        let cut = found.unfinished(&here()).unwrap();
        assert_eq!(cut.len(), usize::from(whole[length - 1] != b'\n'), "{length}: {cut:?}");
    }
    assert!(counts.is_sorted());
    assert_eq!((counts[0], counts[counts.len() - 2], counts[counts.len() - 1]), (0, 2, 3));
    // What is still written to may end anywhere.
    let file = fs::File::open(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    file.lock().unwrap();
    assert!(open(folder.path()).unfinished(&here()).unwrap().is_empty());
}

#[test]
fn damage_is_named() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path()).append(&here(), &case(1.0, &[("a", Some(1.0))])).unwrap();
    let path = segments(folder.path()).remove(0);
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole.replace("1.0]", "2.0]")).unwrap();
    let damaged = open(folder.path()).read(&here()).unwrap_err();
    assert!(damaged.fault == Fault::Damaged && damaged.to_string().contains("line 2"), "{damaged}");
    fs::write(&path, whole.replace("segment 1", "segment 7")).unwrap();
    let foreign = open(folder.path()).read(&here()).unwrap_err();
    assert!(foreign.fault == Fault::Version && foreign.message.contains("version 7"), "{foreign}");
    // Of this very version, as an editor on another system leaves it: the version is not what is wrong.
    fs::write(&path, whole.replace('\n', "\r\n")).unwrap();
    let changed = open(folder.path()).read(&here()).unwrap_err();
    assert!(changed.fault == Fault::Damaged && !changed.message.contains("version"), "{changed}");
    fs::write(&path, "something else\n").unwrap();
    assert!(open(folder.path()).read(&here()).is_err_and(|e| e.fault == Fault::Damaged));
    fs::write(folder.path().join("format"), "tilewright repository 2\n").unwrap();
    let newer = Embedded::open(folder.path()).err();
    let newer = newer.unwrap();
    assert!(newer.fault == Fault::Version && newer.message.contains("version 2"), "{newer}");
    for same in ["tilewright repository 1", "tilewright repository 1\r\n"] {
        fs::write(folder.path().join("format"), same).unwrap();
        assert!(Embedded::open(folder.path()).is_ok(), "{same:?} is version 1");
    }
    fs::write(folder.path().join("format"), "jpeg\n").unwrap();
    let other = Embedded::open(folder.path()).err().unwrap();
    assert!(other.message.contains("no repository") && other.message.contains("jpeg"), "{other}");
}

#[test]
fn looking_writes_nothing_and_other_folders_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    assert!(Embedded::open_existing(&missing).unwrap().is_none() && !missing.exists());
    assert!(Embedded::open_existing(folder.path()).unwrap().is_none());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    fs::write(folder.path().join("letter.txt"), "not ours").unwrap();
    for refused in [Embedded::open_existing(folder.path()).err(), Embedded::open(folder.path()).err()] {
        let refused = refused.expect("it is refused");
        assert!(refused.fault == Fault::Version && refused.message.contains("no repository"), "{refused}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// A negative time with a right checksum: somebody else's program wrote it.
#[test]
fn poison_of_others_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = open(folder.path());
    writer.append(&here(), &case(1.0, &[("a", Some(1.0))])).unwrap();
    let path = segments(folder.path()).remove(0);
    let json = r#"{"id":["stranger",0],"record":{"case":{"features":[],"times":[["a",-1.0]],"group":0}}}"#;
    let sum = blake3::hash(json.as_bytes()).to_hex()[..16].to_owned();
    let mut file = fs::File::options().append(true).open(&path).unwrap();
    writeln!(file, "{sum} {json}").unwrap();
    let poisoned = open(folder.path()).read(&here()).unwrap_err();
    assert_eq!(poisoned.fault, Fault::Poisoned, "{poisoned}");
    assert!(poisoned.to_string().contains("stranger-0") && poisoned.to_string().contains("-1"), "{poisoned}");
}

#[test]
fn files_of_writers_that_are_gone_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    let mut alive = open(folder.path());
    alive.append(&here(), &case(0.0, &[("a", Some(1.0))])).unwrap();
    for n in 1..5 {
        open(folder.path()).append(&here(), &case(n as f32, &[("a", Some(1.0))])).unwrap();
    }
    let before = alive.read(&here()).unwrap();
    assert_eq!(open(folder.path()).compact(&here()).unwrap(), 4);
    assert_eq!(segments(folder.path()).len(), 2);
    assert_eq!(alive.read(&here()).unwrap(), before);
    alive.append(&here(), &case(9.0, &[("a", Some(1.0))])).unwrap();
    assert_eq!(open(folder.path()).read(&here()).unwrap().len(), 6);
    assert_eq!(open(folder.path()).compact(&here()).unwrap(), 1);
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let refused = Embedded::open(&file).err();
    assert!(refused.as_ref().is_some_and(|e| matches!(e.fault, Fault::Io(_))), "{refused:?}");
}
