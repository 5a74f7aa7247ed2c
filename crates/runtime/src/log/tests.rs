use super::*;
use proptest::prelude::*;
use tilewright_core::id::KernelId;
use tilewright_core::measurement::{Failure, FailureKind, Measurement};
use tilewright_core::space::Config;

fn header() -> LogHeader {
    LogHeader {
        kernel: KernelId::new("toy"),
        fingerprint: "f".repeat(32),
        device: "Test".into(),
        fixed: Config::default(),
    }
}

fn sample(draw: u64) -> Sample {
    let outcome = if draw % 3 == 2 {
        Err(Failure { kind: FailureKind::CutOff, message: "ran \"long\"\n".into() })
    } else {
        Ok(Measurement::recorded(1e-3 / (draw + 1) as f64))
    };
    Sample {
        draw,
        seed: 42,
        input: Config::parse("m=3,dtype=f32").unwrap(),
        config: Config::parse("block=8,pack=none").unwrap(),
        outcome,
        cut_off_s: None,
        spent_s: 0.25,
    }
}

fn fill(path: &Path, count: u64) {
    let mut opened = CampaignLog::open(path, &header()).unwrap();
    for draw in opened.samples.len() as u64..count {
        opened.log.append(&Record::Sample(sample(draw))).unwrap();
    }
}

#[test]
fn what_is_appended_is_there_when_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("logs/toy.log");
    fill(&path, 4);
    let mut opened = CampaignLog::open(&path, &header()).unwrap();
    assert_eq!(opened.samples, (0..4).map(sample).collect::<Vec<_>>());
    assert_eq!((opened.finished, opened.torn), (0, 0));
    opened.log.append(&Record::Finished { at: 1 }).unwrap();
    opened.log.append(&Record::Sample(sample(4))).unwrap();
    drop(opened);
    let opened = CampaignLog::open(&path, &header()).unwrap();
    assert_eq!((opened.samples.len(), opened.finished), (5, 4));
    assert_eq!(CampaignLog::read(&path).unwrap(), (header(), opened.samples));
}

#[test]
fn truncation_at_every_byte_loses_the_torn_record_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    fill(&path, 3);
    let whole = fs::read(&path).unwrap();
    let ends: Vec<usize> = whole.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1).collect();
    for cut in 0..=whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let opened = CampaignLog::open(&path, &header()).unwrap();
        // Two lines come before the samples: the magic and the header.
        let complete = ends.iter().filter(|e| **e <= cut).count().saturating_sub(2);
        assert_eq!(opened.samples, (0..complete as u64).map(sample).collect::<Vec<_>>(), "cut at {cut}");
        drop(opened);
        fill(&path, 3);
        assert_eq!(fs::read(&path).unwrap(), whole, "resumed after a cut at {cut}");
    }
}

#[test]
fn flipped_bits_are_refused_and_nothing_is_touched() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    fill(&path, 2);
    let whole = fs::read(&path).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        // Every bit of the bytes; opening the file, which syncs it, for some of them and for the last newline.
        let last = bit / 8 == whole.len() - 1;
        assert!(last || parse(&flipped).is_err(), "bit {bit}");
        if !last && bit % 61 != 0 {
            continue;
        }
        fs::write(&path, &flipped).unwrap();
        match CampaignLog::open(&path, &header()) {
            Err(error) => {
                assert!(error.to_string().contains(&*path.to_string_lossy()), "{error}");
                assert_eq!(fs::read(&path).unwrap(), flipped, "bit {bit}");
            }
            // The last newline is gone: a torn record to all appearances.
            Ok(opened) => assert_eq!((bit / 8, opened.samples.len()), (whole.len() - 1, 1), "bit {bit}"),
        }
    }
}

#[test]
fn foreign_files_are_named_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let kind = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        CampaignLog::open(&path, &header()).err().unwrap().kind
    };
    assert!(matches!(kind(b"tilewright log 2\n"), StoreErrorKind::ForeignVersion { found: 2, known: 1 }));
    assert!(matches!(kind(b"a diary\n"), StoreErrorKind::NotOurs { .. }));
    fs::remove_file(&path).unwrap();
    fill(&path, 1);
    let other = LogHeader { kernel: KernelId::new("gemm"), ..header() };
    assert!(matches!(CampaignLog::open(&path, &other).err().unwrap().kind, StoreErrorKind::OtherKernel { .. }));
    let other = LogHeader { fingerprint: "0".repeat(32), ..header() };
    assert!(matches!(CampaignLog::open(&path, &other).err().unwrap().kind, StoreErrorKind::OtherDevice(_)));
}

#[test]
fn a_second_writer_is_turned_away() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let first = CampaignLog::open(&path, &header()).unwrap();
    let error = CampaignLog::open(&path, &header()).err().unwrap();
    assert!(matches!(error.kind, StoreErrorKind::Locked), "{error}");
    drop(first);
    CampaignLog::open(&path, &header()).unwrap();
}

/// A disk that holds this many more bytes.
struct FullDisk {
    file: Locked,
    left: usize,
}

impl Sink for FullDisk {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let fits = bytes.len().min(self.left);
        self.file.append(&bytes[..fits])?;
        self.left -= fits;
        if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn cut_to(&mut self, length: u64) -> io::Result<()> {
        self.file.cut_to(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_loses_nothing_that_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let Opened { mut log, .. } = CampaignLog::open(&path, &header()).unwrap();
    log.close();
    let mut file = File::options().write(true).open(&path).and_then(Locked::attempt).unwrap().unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    log.sink = Box::new(FullDisk { file, left: 1000 });
    let mut written = 0;
    let error = loop {
        match log.append(&Record::Sample(sample(written))) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error.kind, StoreErrorKind::DiskFull), "{error}");
    assert!(written > 0);
    drop(log);
    let opened = CampaignLog::open(&path, &header()).unwrap();
    assert_eq!((opened.samples.len() as u64, opened.torn), (written, 0), "the part of a record was removed");
}

#[test]
fn whole_records_that_make_no_log_are_refused() {
    let line = |record: &Record| String::from_utf8(record::to_line(record).unwrap()).unwrap();
    let (head, one) = (line(&Record::Header(header())), line(&Record::Sample(sample(0))));
    let read = |lines: &[&str]| CampaignLog::from_bytes([&[MAGIC], lines].concat().concat().as_bytes());
    assert_eq!(read(&[&head, &one]).unwrap(), (header(), vec![sample(0)]));
    let refused = |lines: &[&str]| match read(lines).unwrap_err() {
        StoreErrorKind::Corrupt(why) => why,
        other => panic!("{other}"),
    };
    assert!(refused(&[]).contains("header"));
    assert!(refused(&[&one, &head]).contains("record 0"));
    assert!(refused(&[&head, &one, &head]).contains("record 2"));
    assert!(refused(&[&line(&Record::Finished { at: 1 })]).contains("record 0"));
}

#[test]
fn numbers_that_are_none_are_neither_written_nor_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let mut log = CampaignLog::open(&path, &header()).unwrap().log;
    let before = fs::read(&path).unwrap();
    let timed = |time_s: f64| Sample { outcome: Ok(Measurement::recorded(time_s)), ..sample(0) };
    let wrong = [
        (Sample { spent_s: f64::NAN, ..sample(0) }, "spent_s"),
        (Sample { cut_off_s: Some(f64::INFINITY), ..sample(0) }, "cut_off_s"),
        (timed(f64::NAN), "time_s"),
        (timed(0.0), "time_s"),
        (timed(-1.0), "time_s"),
    ];
    for (sample, field) in wrong {
        let error = log.append(&Record::Sample(sample)).unwrap_err();
        assert!(matches!(&error.kind, StoreErrorKind::Unwritable(why) if why.contains(field)), "{error}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    // The same in a line with a good checksum.
    let json = serde_json::to_string(&Record::Sample(timed(1.0))).unwrap().replace("\"time_s\":1.0", "\"time_s\":-1.0");
    let forged = format!("{:08x} {} {json}", json.len(), &blake3::hash(json.as_bytes()).to_hex()[..16]);
    assert!(record::from_line(forged.as_bytes()).unwrap_err().contains("time_s is -1"));
}

#[test]
fn clearing_empties_a_log_unless_another_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    CampaignLog::clear(&path).unwrap();
    assert!(!path.exists(), "there was none");
    fill(&path, 2);
    let held = CampaignLog::open(&path, &header()).unwrap();
    let error = CampaignLog::clear(&path).unwrap_err();
    assert!(matches!(error.kind, StoreErrorKind::Locked), "{error}");
    drop(held);
    assert_eq!(CampaignLog::read(&path).unwrap().1.len(), 2, "what another process wrote is still there");
    // Damage is cleared too, as it is what clearing is for.
    fs::write(&path, b"junk").unwrap();
    CampaignLog::clear(&path).unwrap();
    fill(&path, 1);
}

#[test]
fn more_than_a_log_can_hold_is_refused_and_not_cut() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    fill(&path, 1);
    // A hole: the file takes no room.
    File::options().write(true).open(&path).unwrap().set_len(LARGEST + 1).unwrap();
    assert!(matches!(CampaignLog::open(&path, &header()).err().unwrap().kind, StoreErrorKind::Corrupt(_)));
    assert!(matches!(CampaignLog::read(&path).err().unwrap().kind, StoreErrorKind::Corrupt(_)));
    assert_eq!(fs::metadata(&path).unwrap().len(), LARGEST + 1);
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut behind = MAGIC.as_bytes().to_vec();
        behind.extend_from_slice(&bytes);
        for text in [&bytes, &behind] {
            if let Ok((_, end)) = parse(text) {
                prop_assert!(end as usize <= text.len());
            }
        }
    }

    #[test]
    fn every_record_round_trips(draw in any::<u64>(), time in 1e-9..1e9f64, word in ".{0,20}") {
        let mut s = sample(0);
        s.draw = draw;
        s.outcome = Ok(Measurement::recorded(time));
        s.input.0.push((word, true.into()));
        let line = record::to_line(&Record::Sample(s.clone())).unwrap();
        prop_assert_eq!(line.iter().filter(|b| **b == b'\n').count(), 1);
        prop_assert_eq!(record::from_line(&line[..line.len() - 1]), Ok(Record::Sample(s)));
    }
}
