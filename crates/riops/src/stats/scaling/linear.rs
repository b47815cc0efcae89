//! Linear algebra of three parameters: too small for a library of matrices.

/// Coefficients of the three parameters.
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
    use super::*;

    const MATRIX: [Row; 3] = [[4.0, 2.0, 1.0], [2.0, 5.0, 3.0], [1.0, 3.0, 6.0]];

    #[test]
    fn solves_for_all_and_for_some_parameters() {
        let expected = [1.0, -2.0, 3.0];
        let vector = MATRIX.map(|row| dot(&row, &expected));
        let found = solve(&MATRIX, &vector, [true; 3]);
        assert!(found.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-12));
        let found = solve(&MATRIX, &[8.0, 1.0, 2.0], [true, false, true]);
        // 4x + z = 8, x + 6z = 2.
        assert_eq!(found[1], 0.0);
        assert!((found[0] - 2.0).abs() < 1e-12 && found[2].abs() < 1e-12, "{found:?}");
    }
}
