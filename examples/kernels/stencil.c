/* A stencil of five points on a grid of h x w, rows one after the other; the border stays as it is.
 *
 * Macros: tile_x (columns of a tile), tile_y (rows of a tile), unroll (cells that are written out side by side).
 */
#define AT(y, x) in[(long)(y) * w + (x)]

#define CELL(x) out[(long)y * w + (x)] = centre * AT(y, x) + side * (AT(y - 1, x) + AT(y + 1, x) + AT(y, (x) - 1) + AT(y, (x) + 1))

static inline int least(int a, int b) { return a < b ? a : b; }

void stencil(float *restrict out, const float *restrict in, int h, int w) {
    const float centre = 0.5f, side = 0.125f;
    for (int x = 0; x < w; x++) {
        out[x] = AT(0, x);
        out[(long)(h - 1) * w + x] = AT(h - 1, x);
    }
    for (int y = 0; y < h; y++) {
        out[(long)y * w] = AT(y, 0);
        out[(long)y * w + w - 1] = AT(y, w - 1);
    }
    for (int ty = 1; ty < h - 1; ty += tile_y) {
        for (int tx = 1; tx < w - 1; tx += tile_x) {
            const int y_end = least(ty + tile_y, h - 1), x_end = least(tx + tile_x, w - 1);
            for (int y = ty; y < y_end; y++) {
                int x = tx;
                for (; x + unroll <= x_end; x += unroll) {
                    for (int i = 0; i < unroll; i++) {
                        CELL(x + i);
                    }
                }
                for (; x < x_end; x++) {
                    CELL(x);
                }
            }
        }
    }
}
