//! Weights of an imaginary device from made-up measurements, with and without overlap.
//!
//! `cargo run -p tilewright-perfmodel-linear --example linear`

use tilewright_perfmodel_linear::{LinearFit, Part, Property, Row, Table};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let columns = [("constant", Part::Overhead), ("fma", Part::Arithmetic), ("load", Part::Memory)];
    let properties = columns.map(|(name, part)| Property { name: name.to_owned(), part }).to_vec();
    let mut table = Table::new(properties, 2e-6);
    for i in 0..30u32 {
        let (fma, load) = (f64::from(i * 37 % 41) * 1e4, f64::from(i * 17 % 43) * 1e4);
        let time_s = 2e-6 + (1e-10 * fma).max(3e-10 * load);
        let pushed = table.push(Row { name: i.to_string(), counts: vec![1.0, fma, load], quantised: 1.0, time_s });
        if let Err(rejected) = pushed {
            println!("left out: {rejected}");
        }
    }
    for (name, how) in [("sum", LinearFit::default()), ("overlap", LinearFit { overlap: true, ..LinearFit::default() })]
    {
        let model = how.fit(&table, "an imaginary device")?;
        println!("{name}: {:?}, error {:.1}%", model.sharpness, 100.0 * model.report.geomean_error);
        for w in &model.weights {
            println!("  {:<9} {:.2e} +- {:.0e} s", w.property.name, w.seconds, w.uncertainty);
        }
    }
    Ok(())
}
