//! 256-bin histograms of greyscale images.

use crate::computation::{Computation, Failure, InputFeature, Named, Prepared, Ready, Variant, Work};
use crate::device::Device;
use crate::generate;
use crate::generate::images::{Scene, image};
use crate::image::Image;
use rand::Rng;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

/// Bins: one a value.
const BINS: usize = 256;
/// Pixels that the dynamic split hands out at a time, and that are sorted at a time.
const TILE: usize = 4096;

/// Counting pixels by value.
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
        let mut tile = [0; TILE];
        for pixels in pixels.chunks(TILE) {
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

struct Run<'a, A> {
    image: &'a Image,
    dynamic: bool,
    bins: Box<[AtomicU32; BINS]>,
    counting: std::marker::PhantomData<A>,
}

fn prepare<A: Counting>(image: &Image, dynamic: bool) -> Ready<'_, Vec<u32>> {
    let bins = Box::new(std::array::from_fn(|_| AtomicU32::new(0)));
    Box::new(Run::<A> { image, dynamic, bins, counting: std::marker::PhantomData })
}

impl<A: Counting> Prepared<Vec<u32>> for Run<'_, A> {
    fn run(&mut self, device: &Device) -> Result<(), Failure> {
        let (isa, shared) = (device.isa(), &*self.bins);
        shared.iter().for_each(|b| b.store(0, Relaxed));
        let pixels = self.image.pixels.as_slice();
        let ranges = device.ranges(pixels.len(), 64);
        let (next, dynamic) = (AtomicUsize::new(0), self.dynamic);
        device.spmd(|thread| {
            let mut own = A::Own::default();
            if dynamic {
                loop {
                    let start = next.fetch_add(TILE, Relaxed);
                    let Some(rest) = pixels.get(start..).filter(|r| !r.is_empty()) else { break };
                    let tile = &rest[..TILE.min(rest.len())];
                    isa.run(
                        #[inline(always)]
                        || A::count(tile, &mut own, shared),
                    );
                }
            } else {
                let share = &pixels[ranges[thread].clone()];
                isa.run(
                    #[inline(always)]
                    || A::count(share, &mut own, shared),
                );
            }
            A::finish(own, shared);
        });
        Ok(())
    }

    fn output(&self) -> Vec<u32> {
        self.bins.iter().map(|b| b.load(Relaxed)).collect()
    }
}

fn work(image: &Image, sorted: bool, atomics: f64, cached: f64, dynamic: bool) -> Work {
    let n = image.pixels.len() as f64;
    let sorting = if sorted { 8.0 * n } else { 0.0 };
    let tiles = if dynamic { (n / TILE as f64).ceil() } else { 0.0 };
    Work {
        atomics: atomics + tiles + BINS as f64,
        streamed: n,
        cached: cached + 3.0 * sorting,
        other: 2.0 * n + 3.0 * sorting,
        ..Work::default()
    }
}

impl Computation for Histogram {
    const NAME: &'static str = "histogram";
    type Input = Image;
    type Output = Vec<u32>;

    fn variants() -> Vec<Variant<Image, Vec<u32>>> {
        let legal = |_: &Image| Ok(());
        vec![
            Variant {
                name: "private-static",
                legal,
                prepare: |i| prepare::<Private>(i, false),
                work: |i| work(i, false, 0.0, 2.0 * i.pixels.len() as f64, false),
            },
            Variant {
                name: "private-dynamic",
                legal,
                prepare: |i| prepare::<Private>(i, true),
                work: |i| work(i, false, 0.0, 2.0 * i.pixels.len() as f64, true),
            },
            Variant {
                name: "banked-static",
                legal,
                prepare: |i| prepare::<Banked>(i, false),
                work: |i| work(i, false, 0.0, 2.0 * i.pixels.len() as f64 + 4096.0, false),
            },
            Variant {
                name: "banked-dynamic",
                legal,
                prepare: |i| prepare::<Banked>(i, true),
                work: |i| work(i, false, 0.0, 2.0 * i.pixels.len() as f64 + 4096.0, true),
            },
            Variant {
                name: "sort-static",
                legal,
                prepare: |i| prepare::<Sorting>(i, false),
                work: |i| work(i, true, 0.0, i.pixels.len() as f64, false),
            },
            Variant {
                name: "sort-dynamic",
                legal,
                prepare: |i| prepare::<Sorting>(i, true),
                work: |i| work(i, true, 0.0, i.pixels.len() as f64, true),
            },
            Variant {
                name: "atomic-static",
                legal,
                prepare: |i| prepare::<Atomic>(i, false),
                work: |i| work(i, false, i.pixels.len() as f64, 0.0, false),
            },
            Variant {
                name: "atomic-dynamic",
                legal,
                prepare: |i| prepare::<Atomic>(i, true),
                work: |i| work(i, false, i.pixels.len() as f64, 0.0, true),
            },
        ]
    }

    fn features() -> Vec<InputFeature<Image>> {
        vec![
            InputFeature { name: "n", flag: false, of: |i| i.pixels.len() as f64 },
            InputFeature { name: "n_per_bin", flag: false, of: |i| i.pixels.len() as f64 / BINS as f64 },
            InputFeature { name: "sub_sample_sd", flag: false, of: |i| sample(i).0 },
            // The paper's three do not tell a ramp from noise.
            InputFeature { name: "sub_sample_repeats", flag: false, of: |i| sample(i).1 },
        ]
    }

    fn reference(image: &Image) -> Vec<u32> {
        let count = |value: usize| image.pixels.iter().filter(|&&p| p as usize == value).count() as u32;
        (0..BINS).map(count).collect()
    }

    fn judge(_: &Image, expected: &Vec<u32>, found: &Vec<u32>) -> Result<(), String> {
        let bin = expected.iter().zip(found).position(|(e, f)| e != f);
        let bin = bin.or_else(|| (expected.len() != found.len()).then_some(found.len()));
        bin.map_or(Ok(()), |bin| Err(format!("bin {bin}: {:?} instead of {:?}", found.get(bin), expected.get(bin))))
    }

    fn inputs() -> Vec<Named<Image>> {
        generate::collection("images", 240, |rng, seed| {
            let pixels = generate::sized(rng, 150.0, 250_000.0);
            let width = (pixels.sqrt() * rng.random_range(0.7..1.4)).max(8.0) as usize;
            let height = (pixels as usize / width).max(8);
            let scene = match seed % 6 {
                0 => Scene::Noise(generate::sized(rng, 2.0, 256.0) as u32),
                1 => Scene::Flat,
                2 => Scene::Ramp,
                3 => Scene::Patches(generate::sized(rng, 5.0, 300.0) as usize),
                4 => Scene::Photo(rng.random_range(1..30)),
                _ => Scene::Half(f64::from(rng.random_range(5..70)) / 100.0),
            };
            let what = format!("{scene:?},{width},{height},{seed}").replace(['(', ')'], " ");
            Named::new(scene.name(), &what, move || image(scene, width, height, seed))
        })
    }
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
