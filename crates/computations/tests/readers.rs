//! Files of a user: what is read, and that nothing in them brings the readers down.

use proptest::prelude::*;
use tilewright_computations::image::{Image, parse_pgm};
use tilewright_computations::matrix::{Csr, market};

const MATRIX: &str =
    "%%MatrixMarket matrix coordinate real symmetric\n% a comment\n3 3 4\n1 1 2.5\n2 1 -1\n3 3 1e2\n3 2 4\n";

#[test]
fn matrices_are_read() {
    let read = |text: &str| market::parse(text.as_bytes()).expect(text);
    let expected = vec![(0, 0, 2.5), (0, 1, -1.0), (1, 0, -1.0), (1, 2, 4.0), (2, 1, 4.0), (2, 2, 100.0)];
    assert_eq!(read(MATRIX), Csr::of_entries(3, 3, expected));
    let pattern = "%%MatrixMarket matrix coordinate pattern general\n2 3 2\n1 3\n2 1\n";
    assert_eq!(read(pattern), Csr::of_entries(2, 3, vec![(0, 2, 1.0), (1, 0, 1.0)]));
    let skew = "%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 7\n";
    assert_eq!(read(skew), Csr::of_entries(2, 2, vec![(1, 0, 7.0), (0, 1, -7.0)]));
    let array = "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n";
    assert_eq!(read(array), Csr::of_entries(2, 2, vec![(0, 0, 1.0), (1, 0, 2.0), (0, 1, 3.0), (1, 1, 4.0)]));
}

#[test]
fn faults_of_matrices_are_told_with_their_line() {
    for (text, line, part) in [
        ("", 1, "%%MatrixMarket"),
        ("%%MatrixMarket vector coordinate real general\n", 1, "vector"),
        ("%%MatrixMarket matrix coordinate complex general\n1 1 0\n", 1, "complex"),
        ("%%MatrixMarket matrix coordinate real general\n2 2\n", 2, "2 words"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n", 2, "ends before entry 1 of 1"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1.0\n", 3, "row 3 of 1 to 2"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n0 1 1.0\n", 3, "row 0"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 x\n", 3, "\"x\""),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 inf\n", 3, "not finite"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 1\n2 2 2\n", 4, "more entries"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 5\n", 2, "5 entries"),
        ("%%MatrixMarket matrix coordinate real symmetric\n2 3 1\n1 1 1\n", 3, "2x3"),
        ("%%MatrixMarket matrix coordinate real general\n99999999999 2 1\n1 1 1\n", 2, "at most"),
    ] {
        let error = market::parse(text.as_bytes()).expect_err(text);
        assert!(error.line == line && error.message.contains(part), "{text:?}: {error}");
    }
}

#[test]
fn images_are_read() {
    let read = |file: &[u8]| parse_pgm(file).expect("an image");
    assert_eq!(read(b"P2 # plain\n2 2\n255\n0 1\n2 255\n"), Image { width: 2, pixels: vec![0, 1, 2, 255] });
    assert_eq!(read(b"P5\n3 1\n255\n\x00\x80\xff"), Image { width: 3, pixels: vec![0, 128, 255] });
    assert_eq!(read(b"P5 1 2 65535\n\x12\x34\xff\xff"), Image { width: 1, pixels: vec![0x12, 255] });
    assert_eq!(read(b"P2 2 1 3 0 3"), Image { width: 2, pixels: vec![0, 255] });
}

#[test]
fn faults_of_images_are_told_with_their_line() {
    for (file, line, part) in [
        (&b""[..], 1, "P2 or P5"),
        (b"P6\n1 1\n255\n", 1, "P6"),
        (b"P2\n2 x\n255\n", 2, "height"),
        (b"P2\n2 2\n0\n", 3, "0"),
        (b"P2\n2 2\n255\n1 2 3\n", 5, "ends before a pixel"),
        (b"P2\n1 1\n9\n10\n", 4, "at most 9"),
        (b"P5\n4 4\n255\nabc", 4, "3 of 16 bytes"),
        (b"P5\n99999 99999\n255\n", 2, "can be read"),
        (b"P5\n1 1\n70000\n\0", 3, "at most 65535"),
    ] {
        let error = parse_pgm(file).expect_err("a fault");
        assert!(error.line == line && error.message.contains(part), "{:?}: {error}", String::from_utf8_lossy(file));
    }
}

/// One change of a file.
#[derive(Clone, Debug)]
enum Change {
    Put(usize, u8),
    Drop(usize),
    Insert(usize, u8),
    End(usize),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let at = 0..200usize;
    let byte = prop_oneof![proptest::sample::select(b" \n%#-+.eE0123456789".to_vec()), any::<u8>()];
    let change = prop_oneof![
        (at.clone(), byte.clone()).prop_map(|(a, b)| Change::Put(a, b)),
        at.clone().prop_map(Change::Drop),
        (at.clone(), byte).prop_map(|(a, b)| Change::Insert(a, b)),
        at.prop_map(Change::End),
    ];
    proptest::collection::vec(change, 1..6)
}

fn changed(file: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut out = file.to_vec();
    for change in changes {
        let length = out.len().max(1);
        match *change {
            Change::Put(at, byte) if !out.is_empty() => out[at % length] = byte,
            Change::Drop(at) if !out.is_empty() => drop(out.remove(at % length)),
            Change::Insert(at, byte) => out.insert(at % length.min(out.len() + 1), byte),
            Change::End(at) => out.truncate(at),
            _ => {}
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn no_change_of_a_matrix_brings_the_reader_down(changes in changes()) {
        let file = changed(MATRIX.as_bytes(), &changes);
        match market::parse(&file) {
            Ok(matrix) => prop_assert!(matrix.columns.iter().all(|&c| (c as usize) < matrix.cols)),
            Err(error) => prop_assert!(error.line >= 1 && !error.message.is_empty()),
        }
    }

    #[test]
    fn no_change_of_an_image_brings_the_reader_down(changes in changes(), plain in any::<bool>()) {
        let file: &[u8] = if plain { b"P2 # c\n4 3\n15\n0 1 2 3\n4 5 6 7\n8 9 10 15\n" } else { b"P5\n# c\n4 3\n255\nabcdefghijkl" };
        match parse_pgm(&changed(file, &changes)) {
            Ok(image) => prop_assert!(image.width == 0 || image.pixels.len() % image.width == 0),
            Err(error) => prop_assert!(error.line >= 1 && !error.message.is_empty()),
        }
    }
}
