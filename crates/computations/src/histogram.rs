//! 256-bin histograms of greyscale images.

use crate::description::{DataFeature, Description, Routine, Variant, exactly, size, spec};
use crate::generate::images::{Scene, image};
use crate::image::{Image, parse_pgm};
use crate::isa::on_isa;
use crate::source::{Dice, Fault, Field, Generator, Numbers};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use tilewright_core::buffer::{Buffer, BufferSpec, Buffers, ExpectedBuffer, Filling, Role};
use tilewright_core::computation::Work;
use tilewright_core::dtype::DType;

/// Bins: one a value.
const BINS: usize = 256;
/// Pixels that the dynamic split hands out at a time.
const TILES: [i64; 4] = [1024, 4096, 16384, 65536];
/// The same before anything is tuned.
const TILE: i64 = 4096;
/// Pixels that are sorted at a time.
const SORTED: usize = 4096;

/// Counting pixels by value: `pixels`, and `bins`.
pub struct Histogram;

type Bins = [u32; BINS];

/// How a run of pixels is counted.
trait Counting: Copy + Send + Sync + 'static {
    /// What a thread keeps to itself.
    type Own: Default + Send;
    fn count(pixels: &[u8], own: &mut Self::Own, shared: &[AtomicU32; BINS]);
    fn finish(own: Self::Own, shared: &[AtomicU32; BINS]);
}

/// Sorts tiles, then counts the lengths of runs.
#[derive(Clone, Copy)]
struct Sorting;
/// Adds every pixel to the counters of all threads.
#[derive(Clone, Copy)]
struct Atomic;
/// Adds to a copy of the thread's own.
#[derive(Clone, Copy)]
struct Private;
/// Adds to four copies in turn, so that equal neighbours do not wait for each other.
#[derive(Clone, Copy)]
struct Banked;

/// A table that starts at zero.
struct Table<const N: usize>(Box<[Bins; N]>);

impl<const N: usize> Default for Table<N> {
    fn default() -> Self {
        Self(Box::new([[0; BINS]; N]))
    }
}

fn add(counts: &Bins, shared: &[AtomicU32; BINS]) {
    for (count, bin) in counts.iter().zip(shared) {
        if *count > 0 {
            bin.fetch_add(*count, Relaxed);
        }
    }
}

impl Counting for Sorting {
    type Own = Table<1>;

    #[inline(always)]
    fn count(pixels: &[u8], own: &mut Table<1>, _: &[AtomicU32; BINS]) {
        let mut tile = [0; SORTED];
        for pixels in pixels.chunks(SORTED) {
            let tile = &mut tile[..pixels.len()];
            tile.copy_from_slice(pixels);
            tile.sort_unstable();
            let mut start = 0;
            while let Some(&value) = tile.get(start) {
                let length = run_length(&tile[start..], value);
                own.0[0][value as usize] += length as u32;
                start += length;
            }
        }
    }

    fn finish(own: Table<1>, shared: &[AtomicU32; BINS]) {
        add(&own.0[0], shared);
    }
}

/// Leading pixels of this value, 32 at a time.
#[inline(always)]
fn run_length(pixels: &[u8], value: u8) -> usize {
    let (blocks, _) = pixels.as_chunks::<32>();
    let whole = 32 * blocks.iter().take_while(|b| b.iter().fold(true, |all, &p| all & (p == value))).count();
    whole + pixels[whole..].iter().take_while(|&&p| p == value).count()
}

impl Counting for Atomic {
    type Own = ();

    #[inline(always)]
    fn count(pixels: &[u8], (): &mut (), shared: &[AtomicU32; BINS]) {
        for &pixel in pixels {
            shared[pixel as usize].fetch_add(1, Relaxed);
        }
    }

    fn finish((): (), _: &[AtomicU32; BINS]) {}
}

impl Counting for Private {
    type Own = Table<1>;

    #[inline(always)]
    fn count(pixels: &[u8], own: &mut Table<1>, _: &[AtomicU32; BINS]) {
        let [bins] = &mut *own.0;
        for &pixel in pixels {
            bins[pixel as usize] += 1;
        }
    }

    fn finish(own: Table<1>, shared: &[AtomicU32; BINS]) {
        add(&own.0[0], shared);
    }
}

impl Counting for Banked {
    type Own = Table<4>;

    #[inline(always)]
    fn count(pixels: &[u8], own: &mut Table<4>, _: &[AtomicU32; BINS]) {
        let [a, b, c, d] = &mut *own.0;
        let (fours, rest) = pixels.as_chunks::<4>();
        for four in fours {
            a[four[0] as usize] += 1;
            b[four[1] as usize] += 1;
            c[four[2] as usize] += 1;
            d[four[3] as usize] += 1;
        }
        for &pixel in rest {
            a[pixel as usize] += 1;
        }
    }

    fn finish(own: Table<4>, shared: &[AtomicU32; BINS]) {
        let mut sum = [0; BINS];
        for bins in own.0.iter() {
            sum.iter_mut().zip(bins).for_each(|(s, b)| *s += b);
        }
        add(&sum, shared);
    }
}

fn fixed<A: Counting>(_: &Arc<Image>, _: &[i64]) -> Routine {
    counting::<A>(None)
}

fn dynamic<A: Counting>(_: &Arc<Image>, params: &[i64]) -> Routine {
    counting::<A>(Some(params.first().map_or(1, |t| t.unsigned_abs().max(1) as usize)))
}

/// Pixels are split among the threads in equal shares, or tile by tile to whoever is ready.
fn counting<A: Counting>(tile: Option<usize>) -> Routine {
    Box::new(move |device, inputs, output| {
        let (isa, pixels) = (device.isa(), inputs[0].as_slice::<u8>());
        let shared: &[AtomicU32; BINS] = &std::array::from_fn(|_| AtomicU32::new(0));
        let ranges = device.ranges(pixels.len(), 64);
        let next = AtomicUsize::new(0);
        device.spmd(|thread| {
            let mut own = A::Own::default();
            if let Some(tile) = tile {
                loop {
                    let start = next.fetch_add(tile, Relaxed);
                    let Some(rest) = pixels.get(start..).filter(|r| !r.is_empty()) else { break };
                    let tile = &rest[..tile.min(rest.len())];
                    on_isa!(isa, A::count(tile, &mut own, shared));
                }
            } else {
                let share = &pixels[ranges[thread].clone()];
                on_isa!(isa, A::count(share, &mut own, shared));
            }
            A::finish(own, shared);
        });
        let bins = output.as_mut_slice::<u32>().iter_mut();
        bins.zip(shared).for_each(|(bin, count)| *bin = count.load(Relaxed));
        Ok(())
    })
}

/// A generator of images whose first fields are their sides; `others` draws the rest of the fields.
macro_rules! of_images {
    ($name:expr, $fields:expr, $make:expr, $others:expr $(,)?) => {
        Generator {
            name: $name,
            fields: $fields,
            rows: |_| 0.0,
            elements: |n| n.real("width") * n.real("height"),
            make: $make,
            draw: |dice, pixels| {
                let others: fn(&mut Dice<'_>) -> Vec<f64> = $others;
                let sides = sides(dice, pixels);
                sides.into_iter().chain(others(dice)).collect()
            },
        }
    };
}

impl Description for Histogram {
    const NAME: &'static str = "histogram";
    const FIELD: &'static str = "image";
    const DRAWN: (f64, f64) = (150.0, 4e6);
    const ELEMENT_BYTES: f64 = 1.0;
    const BUFFERS: (f64, f64) = (0.0, 1.0);
    type Data = Image;

    const GENERATORS: &'static [Generator<Image>] = &[
        of_images!(
            "noise",
            &[WIDTH, HEIGHT, Field::whole("values", 1, 256).or(256.0), Field::seed()],
            |n| { made(Scene::Noise(n.whole("values") as u32), n) },
            |dice| vec![dice.count(2.0, 256.0), dice.seed()]
        ),
        of_images!("flat", &[WIDTH, HEIGHT, Field::seed()], |n| made(Scene::Flat, n), |dice| vec![dice.seed()]),
        of_images!("ramp", &[WIDTH, HEIGHT], |n| made(Scene::Ramp, n), |_| Vec::new()),
        of_images!(
            "patches",
            &[WIDTH, HEIGHT, Field::whole("patches", 0, 1 << 16), Field::seed()],
            |n| { made(Scene::Patches(n.whole("patches")), n) },
            |dice| vec![dice.count(5.0, 300.0), dice.seed()]
        ),
        of_images!(
            "photo",
            &[WIDTH, HEIGHT, Field::whole("off", 0, 255), Field::seed()],
            |n| { made(Scene::Photo(n.whole("off") as u32), n) },
            |dice| vec![1.0 + dice.below(29) as f64, dice.seed()]
        ),
        of_images!(
            "half-noise",
            &[WIDTH, HEIGHT, Field::real("share", 0.0, 1.0), Field::seed()],
            |n| { made(Scene::Half(n.real("share")), n) },
            |dice| vec![(5 + dice.below(65)) as f64 / 100.0, dice.seed()]
        ),
    ];
    const AWKWARD: &'static [&'static str] = &[
        "image=noise,width=0,height=0,values=256,seed=1",
        "image=flat,width=1,height=1,seed=1",
        "image=noise,width=31,height=33,values=3,seed=1",
        "image=patches,width=67,height=69,patches=5,seed=1",
        "image=ramp,width=131,height=133",
    ];
    const FEATURES: &'static [DataFeature<Image>] = &[
        size("n", |i| i.pixels.len() as f64),
        size("n_per_bin", |i| i.pixels.len() as f64 / BINS as f64),
        size("sub_sample_sd", |i| sample(i).0),
        // The paper's three do not tell a ramp from noise.
        size("sub_sample_repeats", |i| sample(i).1),
    ];

    fn read(file: &[u8]) -> Option<Result<Image, Fault>> {
        Some(parse_pgm(file))
    }

    fn work(image: &Image) -> Work {
        Work { flops: 0.0, bytes: (image.pixels.len() + 4 * BINS) as f64 }
    }

    fn specs(image: &Image) -> Vec<BufferSpec> {
        vec![spec("pixels", DType::I8, image.pixels.len(), Role::In), spec("bins", DType::I32, BINS, Role::Out)]
    }

    /// Seeds make all pixels lighter, and the lightest ones dark.
    fn fill(image: &Image, _: Filling, seed: u64, buffers: &mut [Buffer]) {
        let pixels = buffers[0].as_mut_slice::<u8>();
        pixels.iter_mut().zip(&image.pixels).for_each(|(to, from)| *to = from.wrapping_add(seed as u8));
    }

    fn reference(_: &Image, before: &Buffers) -> ExpectedBuffer {
        let mut bins = vec![0.0; BINS];
        before[0].as_slice::<u8>().iter().for_each(|&p| bins[usize::from(p)] += 1.0);
        exactly(1, bins)
    }

    fn variants() -> Vec<Variant<Image>> {
        let tiled = |name, prepare| Variant::new(name, prepare).param("tile", &TILES, TILE);
        vec![
            Variant::new("private-static", fixed::<Private>),
            tiled("private-dynamic", dynamic::<Private>),
            Variant::new("banked-static", fixed::<Banked>),
            tiled("banked-dynamic", dynamic::<Banked>),
            Variant::new("sort-static", fixed::<Sorting>),
            tiled("sort-dynamic", dynamic::<Sorting>),
            Variant::new("atomic-static", fixed::<Atomic>),
            tiled("atomic-dynamic", dynamic::<Atomic>),
        ]
    }
}

const WIDTH: Field = Field::whole("width", 0, 1 << 16);
const HEIGHT: Field = Field::whole("height", 0, 1 << 16);

fn made(scene: Scene, n: &Numbers<'_>) -> Image {
    image(scene, n.whole("width"), n.whole("height"), n.seed())
}

/// Sides of an image with about so many pixels.
fn sides(dice: &mut Dice<'_>, pixels: f64) -> [f64; 2] {
    let width = (pixels.sqrt() * dice.between(0.7, 1.4)).max(8.0).floor();
    [width, (pixels / width).max(8.0).floor()]
}

/// Standard deviation, and share of pixels that equal the one before, of 512 pixels in sixteen stretches.
fn sample(image: &Image) -> (f64, f64) {
    let step = (image.pixels.len() / 16).max(1);
    let (mut n, mut sum, mut squares, mut repeats) = (0, 0, 0, 0);
    for stretch in image.pixels.chunks(step).take(16) {
        let stretch = &stretch[..stretch.len().min(32)];
        n += stretch.len() as u32;
        sum += stretch.iter().map(|&p| u32::from(p)).sum::<u32>();
        squares += stretch.iter().map(|&p| u32::from(p).pow(2)).sum::<u32>();
        repeats += stretch.windows(2).map(|w| u32::from(w[0] == w[1])).sum::<u32>();
    }
    let n = f64::from(n.max(1));
    let mean = f64::from(sum) / n;
    ((f64::from(squares) / n - mean.powi(2)).max(0.0).sqrt(), f64::from(repeats) / n)
}
