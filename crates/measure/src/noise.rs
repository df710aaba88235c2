//! The noise of a field's bytes, within a run and between runs.

use playfield_load::Block;

/// With fewer blocks nothing is known of the noise.
const BLOCKS_MIN: usize = 8;
/// Blocks that depend on each other more than this are taken to depend this much.
const CORRELATION_MAX: f64 = 0.9;

/// With fewer runs nothing is known of the noise between them.
const RUNS_MIN: usize = 3;

/// The standard error of a field's bytes in a patch, estimated from the blocks of some runs: the
/// larger one of the noise within runs and of that between them. `None` from too few blocks.
///
/// Differences that last for a whole run, such as where players are, show only between runs.
pub(crate) fn error_of(runs: &[Vec<Block>], field: usize) -> Option<f64> {
    let all: f64 = runs.iter().map(|run| patches(run)).sum();
    let within: Vec<f64> =
        runs.iter().map(|run| error_within(run, field)).collect::<Option<_>>()?;
    if within.is_empty() || all == 0.0 {
        return None;
    }
    // Errors of sums add up as squares do.
    let sums = within.iter().zip(runs).map(|(error, run)| error * patches(run));
    let within = sums.map(|error| error * error).sum::<f64>().sqrt() / all;
    if runs.len() < RUNS_MIN {
        return Some(within);
    }
    let means: Vec<f64> = runs.iter().map(|run| mean_of(run, field)).collect();
    let count = means.len() as f64;
    let mean = means.iter().sum::<f64>() / count;
    let squares: f64 = means.iter().map(|of| (of - mean) * (of - mean)).sum();
    Some(within.max((squares / (count - 1.0) / count).sqrt()))
}

/// The standard error within a run.
///
/// Blocks are not alike: what happens in one goes on in the next. So their variance is multiplied
/// by
/// `(1 + r) / (1 - r)`, where `r` is the correlation of neighbors, as for a process of first order
/// (Priestley, *Spectral Analysis and Time Series*, 1981, 5.3).
fn error_within(run: &[Block], field: usize) -> Option<f64> {
    if run.len() < BLOCKS_MIN {
        return None;
    }
    let mean = mean_of(run, field);
    let off = |block: &Block| bytes(block, field) - mean * block.patches as f64;
    let off: Vec<f64> = run.iter().map(off).collect();
    let squares: f64 = off.iter().map(|off| off * off).sum();
    if squares == 0.0 {
        return Some(0.0);
    }
    let neighbors: f64 = off.windows(2).map(|two| two[0] * two[1]).sum();
    let correlation = (neighbors / squares).clamp(0.0, CORRELATION_MAX);
    let count = run.len() as f64;
    let variance = squares * count / (count - 1.0) * (1.0 + correlation) / (1.0 - correlation);
    Some(variance.sqrt() / patches(run))
}

fn mean_of(run: &[Block], field: usize) -> f64 {
    run.iter().map(|block| bytes(block, field)).sum::<f64>() / patches(run).max(1.0)
}

fn bytes(block: &Block, field: usize) -> f64 {
    block.bytes.get(field).copied().unwrap_or(0) as f64
}

fn patches(run: &[Block]) -> f64 {
    run.iter().map(|block| block.patches as f64).sum()
}

#[cfg(test)]
mod tests {
    use playfield_load::Block;

    use super::error_of;

    fn run(bytes: impl IntoIterator<Item = u64>) -> Vec<Block> {
        bytes.into_iter().map(|bytes| Block { patches: 10, bytes: vec![7, bytes] }).collect()
    }

    #[test]
    fn what_is_always_the_same_has_no_noise() {
        assert_eq!(error_of(&[run([80; 20])], 1), Some(0.0));
        assert_eq!(error_of(&[run([80; 20]), run([80; 7])], 1), None, "too few");
        assert_eq!(error_of(&[], 1), None);
    }

    #[test]
    fn what_lasts_is_noisier_than_what_does_not() {
        let turns = error_of(&[run((0..40).map(|at| 80 + at % 2))], 1).unwrap();
        let lasts = error_of(&[run((0..40).map(|at| 80 + at / 20))], 1).unwrap();
        // Half a byte in a block of ten patches, over 40 blocks.
        let alone = 0.05 / 40_f64.sqrt();
        assert!((turns / alone - 1.0).abs() < 0.05, "{turns} is not {alone}");
        assert!(lasts > 3.0 * turns, "{lasts} > 3 * {turns}");
    }

    #[test]
    fn what_lasts_for_a_run_shows_between_runs() {
        let runs = [80, 90, 85, 85].map(|bytes| run([bytes; 20]));
        assert_eq!(error_of(&runs[..2], 1), Some(0.0), "too few runs");
        let error = error_of(&runs, 1).unwrap();
        // The variance of 8.0, 9.0, 8.5 and 8.5 bytes a patch is 1/6.
        assert!((error - (1.0_f64 / 6.0 / 4.0).sqrt()).abs() < 1e-9, "{error}");
    }
}
