//! Greyscale images of varied entropy.

use super::rng;
use crate::image::Image;
use rand::Rng;

/// What an image shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scene {
    /// Every pixel at random among this many values.
    Noise(u32),
    /// One value.
    Flat,
    /// A value that grows slowly along rows.
    Ramp,
    /// Rectangles of one value each, this many of them, over another.
    Patches(usize),
    /// Values near a smooth surface, off by up to this much.
    Photo(u32),
    /// The upper part is flat, this share of the rows is noise.
    Half(f64),
}

impl Scene {
    /// The generator's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Noise(_) => "noise",
            Self::Flat => "flat",
            Self::Ramp => "ramp",
            Self::Patches(_) => "patches",
            Self::Photo(_) => "photo",
            Self::Half(_) => "half-noise",
        }
    }
}

/// An image of this scene.
pub fn image(scene: Scene, width: usize, height: usize, seed: u64) -> Image {
    let mut rng = rng(scene.name(), seed);
    let mut pixels = vec![rng.random_range(0..=255u8); width * height];
    let rows = pixels.chunks_mut(width.max(1));
    match scene {
        Scene::Flat => {}
        Scene::Noise(values) => {
            let step = 256 / values.clamp(1, 256);
            pixels.iter_mut().for_each(|p| *p = (rng.random_range(0..values.clamp(1, 256)) * step) as u8);
        }
        Scene::Ramp => rows.for_each(|row| {
            row.iter_mut().enumerate().for_each(|(x, p)| *p = (x * 256 / width.max(1)) as u8);
        }),
        Scene::Patches(count) => {
            for _ in 0..if pixels.is_empty() { 0 } else { count } {
                let (x, y) = (rng.random_range(0..width), rng.random_range(0..height));
                let (w, h) = (rng.random_range(1..=width / 3 + 1), rng.random_range(1..=height / 3 + 1));
                let value: u8 = rng.random();
                for row in pixels.chunks_mut(width).skip(y).take(h) {
                    row[x..(x + w).min(width)].fill(value);
                }
            }
        }
        Scene::Photo(off) => {
            let phase: f64 = rng.random_range(0.0..6.0);
            rows.enumerate().for_each(|(y, row)| {
                for (x, p) in row.iter_mut().enumerate() {
                    let smooth = (x as f64 / 90.0 + phase).sin() * (y as f64 / 70.0).cos();
                    let value = 128.0 + 90.0 * smooth + rng.random_range(-f64::from(off)..=f64::from(off));
                    *p = value.clamp(0.0, 255.0) as u8;
                }
            });
        }
        Scene::Half(share) => {
            let first = (height as f64 * (1.0 - share)) as usize;
            rows.skip(first).for_each(|row| row.iter_mut().for_each(|p| *p = rng.random()));
        }
    }
    Image { width, pixels }
}
