//! Nonlinear least squares for the three parameters of the law: Levenberg-Marquardt (Marquardt, SIAM J. Appl.
//! Math. 11, 1963) with steps that are projected onto the bounds.
//!
//! With a = 1/λ, b = σ/λ and c = κ/λ the law is X = 1 / (a/N + b(1 − 1/N) + c(N − 1)): one over a linear function,
//! which is close to linear where least squares needs it, so that one start is enough.

use super::curve::{Curve, ScalingPoint};

/// Iterations, of which a fit typically needs five.
const ITERATIONS_MAX: usize = 200;
/// Relative decrease of the sum of squares at which the fit ends.
const CONVERGED: f64 = 1e-12;
/// The same for the fits of a bootstrap.
const CONVERGED_RESAMPLED: f64 = 1e-8;
/// Lower bound of a in units of the smallest 1/X: λ is at most this many times the highest throughput.
const A_MIN: f64 = 1e-3;

/// Bounds of the parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bounds {
    /// σ ≥ 0 and κ ≥ 0.
    Law,
    /// Any curve that is positive at the measured N. For the distribution of the errors, which a bound would cut.
    None,
}

/// A fitted curve.
#[derive(Debug, Clone)]
pub(super) struct Fit {
    /// The curve.
    pub(super) curve: Curve,
    /// The curve without bounds.
    pub(super) unbounded: Curve,
    /// The scaled problem, for fits to other throughputs at the same N.
    problem: Problem,
    /// The scaled a, b and c, with and without bounds.
    parameters: Row,
    parameters_unbounded: Row,
}

/// The rows of the measurements, scaled so that all parameters are of order 1.
#[derive(Debug, Clone)]
struct Problem {
    rows: Vec<Row>,
    /// The highest throughput.
    throughput: f64,
    /// The largest N − 1.
    span: f64,
}

/// Fits the law to points that are positive and have at least two different N.
pub(super) fn fit(points: &[ScalingPoint]) -> Fit {
    let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    let throughput = largest(&mut points.iter().map(|point| point.throughput_per_s));
    let span = largest(&mut points.iter().map(|point| point.n - 1.0));
    let row = |point: &ScalingPoint| [1.0 / point.n, 1.0 - 1.0 / point.n, (point.n - 1.0) / span];
    let problem = Problem { rows: points.iter().map(row).collect(), throughput, span };
    let scaled: Vec<f64> = points.iter().map(|point| point.throughput_per_s / throughput).collect();
    let start = problem.start(&scaled);
    let parameters = problem.solve(&scaled, start, Bounds::Law, CONVERGED);
    let parameters_unbounded = problem.solve(&scaled, parameters, Bounds::None, CONVERGED);
    Fit {
        curve: problem.curve(parameters),
        unbounded: problem.curve(parameters_unbounded),
        parameters,
        parameters_unbounded,
        problem,
    }
}

impl Fit {
    /// Returns the curves fitted to other throughputs per second at the same N, in the same order: without and
    /// with bounds.
    pub(super) fn refit(&self, throughputs_per_s: &[f64]) -> (Curve, Curve) {
        let scale = self.problem.throughput;
        let scaled: Vec<f64> = throughputs_per_s.iter().map(|value| value / scale).collect();
        let solve = |start, bounds| self.problem.solve(&scaled, start, bounds, CONVERGED_RESAMPLED);
        let unbounded = solve(self.parameters_unbounded, Bounds::None);
        // A minimum within the bounds is the minimum with them.
        let inside = projected(unbounded, Bounds::Law) == unbounded;
        let bounded = if inside { unbounded } else { solve(self.parameters, Bounds::Law) };
        (self.problem.curve(unbounded), self.problem.curve(bounded))
    }

    /// Returns the leverage of each point: the diagonal of the hat matrix. Parameters at their bounds have none.
    pub(super) fn leverages(&self) -> Vec<f64> {
        let free = [true, self.parameters[1] > 0.0, self.parameters[2] > 0.0];
        let jacobian: Vec<Row> =
            self.problem.rows.iter().map(|row| gradient(row, &self.parameters)).collect();
        let matrix = normal_matrix(&jacobian);
        let leverage = |row: &Row| {
            let product = dot(row, &solve(&matrix, row, free));
            if product.is_finite() { product.clamp(0.0, 1.0) } else { 1.0 }
        };
        jacobian.iter().map(leverage).collect()
    }
}

impl Problem {
    fn curve(&self, [a, b, c]: Row) -> Curve {
        Curve { lambda: self.throughput / a, sigma: b / a, kappa: c / self.span / a }
    }

    /// Returns the solution of the linear problem 1/X = a/N + b(1 − 1/N) + c(N − 1), with the weights X⁴: to first
    /// order, its squared errors then equal the squared errors of X.
    fn start(&self, scaled: &[f64]) -> Row {
        let mut matrix = [[0.0; 3]; 3];
        let mut vector = [0.0; 3];
        for (row, x) in self.rows.iter().zip(scaled) {
            let weighted = row.map(|value| value * x * x);
            add_products(&mut matrix, &weighted);
            vector = sum(&vector, &weighted.map(|value| value * x));
        }
        let all = solve(&matrix, &vector, [true; 3]);
        let start =
            if is_within_bounds(&all) { all } else { solve(&matrix, &vector, [true, true, false]) };
        if is_within_bounds(&start) { start } else { [1.0, 0.5, 0.1] }
    }

    /// Minimizes the sum of squares from a start. The sum never grows, so the fit cannot diverge.
    fn solve(&self, scaled: &[f64], start: Row, bounds: Bounds, converged: f64) -> Row {
        let mut parameters = projected(start, bounds);
        let mut squares = self.squares(scaled, &parameters);
        let mut damping = 1e-3;
        for _ in 0..ITERATIONS_MAX {
            let (matrix, descent) = self.normal_equations(scaled, &parameters);
            let free = free(&parameters, &descent, bounds);
            let before = squares;
            while damping < 1e12 {
                let step = solve(&damped(matrix, damping), &descent, free);
                let next = projected(sum(&parameters, &step), bounds);
                let next_squares = self.squares(scaled, &next);
                if next_squares <= squares {
                    (parameters, squares) = (next, next_squares);
                    damping = (damping * 0.1).max(1e-12);
                    break;
                }
                damping *= 10.0;
            }
            if before - squares <= converged * before {
                break;
            }
        }
        parameters
    }

    /// Returns the normal equations: the products of the Jacobian with itself and with the residuals.
    fn normal_equations(&self, scaled: &[f64], parameters: &Row) -> ([Row; 3], Row) {
        let mut matrix = [[0.0; 3]; 3];
        let mut descent = [0.0; 3];
        for (row, x) in self.rows.iter().zip(scaled) {
            let slope = gradient(row, parameters);
            let residual = x - 1.0 / dot(row, parameters);
            add_products(&mut matrix, &slope);
            descent = sum(&descent, &slope.map(|value| value * residual));
        }
        (matrix, descent)
    }

    /// Returns the sum of squares; infinite if the curve is not positive.
    fn squares(&self, scaled: &[f64], parameters: &Row) -> f64 {
        let mut sum = 0.0;
        for (row, x) in self.rows.iter().zip(scaled) {
            let inverse = dot(row, parameters);
            if inverse <= 0.0 {
                return f64::INFINITY;
            }
            let residual = x - 1.0 / inverse;
            sum += residual * residual;
        }
        sum
    }
}

/// Returns the derivatives of X.
fn gradient(row: &Row, parameters: &Row) -> Row {
    let x = 1.0 / dot(row, parameters);
    row.map(|value| -value * x * x)
}

fn projected([a, b, c]: Row, bounds: Bounds) -> Row {
    match bounds {
        Bounds::Law => [a.max(A_MIN), b.max(0.0), c.max(0.0)],
        Bounds::None => [a.max(A_MIN), b, c],
    }
}

fn is_within_bounds(parameters: &Row) -> bool {
    parameters.iter().all(|value| value.is_finite())
        && projected(*parameters, Bounds::Law) == *parameters
}

/// Returns which parameters may change: not those at a bound that the sum of squares pushes further.
fn free(&[a, b, c]: &Row, &[of_a, of_b, of_c]: &Row, bounds: Bounds) -> [bool; 3] {
    let unbounded = bounds == Bounds::None;
    let [b_free, c_free] = [b > 0.0 || of_b > 0.0, c > 0.0 || of_c > 0.0];
    [a > A_MIN || of_a > 0.0, unbounded || b_free, unbounded || c_free]
}

/// Coefficients of the three parameters: too small for a library of matrices.
pub(super) type Row = [f64; 3];

/// Returns the scalar product.
pub(super) fn dot(one: &Row, other: &Row) -> f64 {
    one[0] * other[0] + one[1] * other[1] + one[2] * other[2]
}

/// Returns the sum.
pub(super) fn sum(one: &Row, other: &Row) -> Row {
    [one[0] + other[0], one[1] + other[1], one[2] + other[2]]
}

/// Adds the products of all pairs of values, a symmetric matrix.
pub(super) fn add_products(matrix: &mut [Row; 3], &[x, y, z]: &Row) {
    let [one, two, three] = matrix;
    *one = sum(one, &[x * x, x * y, x * z]);
    *two = sum(two, &[x * y, y * y, y * z]);
    *three = sum(three, &[x * z, y * z, z * z]);
}

/// Returns the product of a Jacobian with itself.
pub(super) fn normal_matrix(jacobian: &[Row]) -> [Row; 3] {
    let mut matrix = [[0.0; 3]; 3];
    for row in jacobian {
        add_products(&mut matrix, row);
    }
    matrix
}

/// Multiplies the diagonal by 1 + damping (Marquardt).
pub(super) fn damped([mut one, mut two, mut three]: [Row; 3], damping: f64) -> [Row; 3] {
    one[0] *= 1.0 + damping;
    two[1] *= 1.0 + damping;
    three[2] *= 1.0 + damping;
    [one, two, three]
}

/// Solves a symmetric positive definite system by the square-root-free Cholesky decomposition, for the free
/// parameters. The others are 0.
pub(super) fn solve(matrix: &[Row; 3], vector: &Row, free: [bool; 3]) -> Row {
    let [[m00, m01, m02], [_, m11, m12], [_, _, m22]] = *matrix;
    let [f0, f1, f2] = free.map(f64::from);
    // A fixed parameter has an empty row and column, and 1 on the diagonal.
    let (m01, m02, m12) = (m01 * f0 * f1, m02 * f0 * f2, m12 * f1 * f2);
    let diagonal =
        |value: f64, is_free: bool| if is_free { value.max(f64::MIN_POSITIVE) } else { 1.0 };
    let [v0, v1, v2] = [vector[0] * f0, vector[1] * f1, vector[2] * f2];
    let d0 = diagonal(m00, free[0]);
    let (l1, l2) = (m01 / d0, m02 / d0);
    let d1 = diagonal(m11 - l1 * m01, free[1]);
    let k = (m12 - l2 * m01) / d1;
    let d2 = diagonal(m22 - l2 * m02 - k * k * d1, free[2]);
    let y1 = v1 - l1 * v0;
    let y2 = v2 - l2 * v0 - k * y1;
    let x2 = y2 / d2;
    let x1 = y1 / d1 - k * x2;
    [v0 / d0 - l1 * x1 - l2 * x2, x1, x2]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn points(curve: Curve, ns: &[f64]) -> Vec<ScalingPoint> {
        let point = |n: &f64| ScalingPoint { n: *n, throughput_per_s: curve.at(*n) };
        ns.iter().map(point).collect()
    }

    fn squares(points: &[ScalingPoint], curve: &Curve) -> f64 {
        points.iter().map(|point| (point.throughput_per_s - curve.at(point.n)).powi(2)).sum()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn recovers_the_parameters_of_values_without_noise(
            lambda in 0.1f64..1e5, sigma in 0.0f64..1.0, log_kappa in -6.0f64..-1.0,
        ) {
            let curve = Curve { lambda, sigma, kappa: 10.0_f64.powf(log_kappa) };
            let fitted = fit(&points(curve, &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 1024.0])).curve;
            prop_assert!((fitted.lambda / lambda - 1.0).abs() < 1e-5, "{fitted:?}");
            prop_assert!((fitted.sigma - sigma).abs() < 1e-5, "{fitted:?}");
            prop_assert!((fitted.kappa / curve.kappa - 1.0).abs() < 1e-3, "{fitted:?}");
        }

        #[test]
        fn no_neighbor_within_the_bounds_has_a_smaller_sum_of_squares(
            values in prop::collection::vec((1u32..2000, 1e-3f64..1e6), 4..12),
            change in 1e-4f64..0.1,
        ) {
            let points: Vec<ScalingPoint> = values.iter().map(|&(n, throughput_per_s)| {
                ScalingPoint { n: f64::from(n), throughput_per_s }
            }).collect();
            prop_assume!(points.iter().any(|point| point.n != points[0].n));
            let fitted = fit(&points);
            let curve = fitted.curve;
            prop_assert!(curve.sigma >= 0.0 && curve.kappa >= 0.0 && curve.lambda > 0.0);
            prop_assert!(curve.lambda.is_finite() && curve.sigma.is_finite(), "{curve:?}");
            let least = squares(&points, &curve) * (1.0 + 1e-6) + 1e-9;
            for at in 0..3 {
                for factor in [1.0 + change, 1.0 - change] {
                    let mut other = fitted.parameters;
                    other[at] = (other[at] * factor).max(if at == 0 { A_MIN } else { 0.0 });
                    let other = fitted.problem.curve(other);
                    prop_assert!(squares(&points, &other) >= least * (1.0 - 1e-5) - 1e-6, "{curve:?} {other:?}");
                }
            }
        }
    }

    #[test]
    fn negative_contention_and_coherency_are_not_possible() {
        // Throughput that grows faster than N.
        let superlinear: Vec<ScalingPoint> = [1.0, 2.0, 4.0, 8.0]
            .map(|n: f64| ScalingPoint { n, throughput_per_s: n.powf(1.2) })
            .to_vec();
        let curve = fit(&superlinear).curve;
        assert_eq!((curve.sigma, curve.kappa), (0.0, 0.0));
        // Least squares of a line through the origin.
        let slope =
            superlinear.iter().map(|point| point.n * point.throughput_per_s).sum::<f64>() / 85.0;
        assert!((curve.lambda - slope).abs() < 1e-6, "{curve:?} {slope}");
    }

    #[test]
    fn the_leverages_add_up_to_the_number_of_parameters() {
        let curve = Curve { lambda: 1000.0, sigma: 0.03, kappa: 8e-4 };
        let mut measured = points(curve, &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
        measured[3].throughput_per_s *= 1.02;
        let leverages = fit(&measured).leverages();
        assert!((leverages.iter().sum::<f64>() - 3.0).abs() < 1e-6, "{leverages:?}");
    }

    const MATRIX: [Row; 3] = [[4.0, 2.0, 1.0], [2.0, 5.0, 3.0], [1.0, 3.0, 6.0]];

    #[test]
    fn solves_for_all_and_for_some_parameters() {
        let expected = [1.0, -2.0, 3.0];
        let vector = MATRIX.map(|row| dot(&row, &expected));
        let solution = solve(&MATRIX, &vector, [true; 3]);
        assert!(solution.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-12));
        let solution = solve(&MATRIX, &[8.0, 1.0, 2.0], [true, false, true]);
        // 4x + z = 8, x + 6z = 2.
        assert_eq!(solution[1], 0.0);
        assert!((solution[0] - 2.0).abs() < 1e-12 && solution[2].abs() < 1e-12, "{solution:?}");
    }
}
