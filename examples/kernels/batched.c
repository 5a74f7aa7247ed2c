/* Products of many small matrices: c = a b for each of `count` pairs, which stand one after the other, rows one after the other.
 *
 * Macros: order (of the loops over tiles, the outermost first: i counts rows of c, j columns of c, p columns of a), tile_m, tile_n (rows and
 * columns of c that are held in registers), tile_k (how many products are added to them before they go to memory).
 */
static inline int least(int a, int b) { return a < b ? a : b; }

#define I for (int i = 0; i < m; i += tile_m)
#define J for (int j = 0; j < n; j += tile_n)
#define P for (int p = 0; p < k; p += tile_k)
#define ijp I J P
#define ipj I P J
#define jip J I P
#define jpi J P I
#define pij P I J
#define pji P J I

struct sizes {
    int m, n, k;
};

/* Adds products to a tile of rows x columns; the first products of a tile are not added to what was there. */
static inline __attribute__((always_inline)) void
tile(float *restrict c, const float *restrict a, const float *restrict b, struct sizes of, int rows, int columns, int depth, int is_first) {
    float sums[tile_m][tile_n];
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < columns; j++) {
            sums[i][j] = is_first ? 0.0f : c[i * of.n + j];
        }
    }
    for (int p = 0; p < depth; p++) {
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < columns; j++) {
                sums[i][j] += a[i * of.k + p] * b[p * of.n + j];
            }
        }
    }
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < columns; j++) {
            c[i * of.n + j] = sums[i][j];
        }
    }
}

static void product(float *restrict c, const float *restrict a, const float *restrict b, int m, int n, int k) {
    const struct sizes of = {m, n, k};
    order {
        const int rows = least(tile_m, m - i), columns = least(tile_n, n - j), depth = least(tile_k, k - p);
        float *at = c + i * n + j;
        const float *left = a + i * k + p, *above = b + p * n + j;
        if (rows == tile_m && columns == tile_n) {
            /* The sizes of a whole tile are known to the compiler. */
            tile(at, left, above, of, tile_m, tile_n, depth, p == 0);
        } else {
            tile(at, left, above, of, rows, columns, depth, p == 0);
        }
    }
}

void batched(float *restrict c, const float *restrict a, const float *restrict b, int m, int n, int k, int count) {
    for (long at = 0; at < count; at++) {
        product(c + at * m * n, a + at * m * k, b + at * k * n, m, n, k);
    }
}
