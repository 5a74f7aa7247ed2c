/* The transposition of h x w numbers, rows one after the other.
 *
 * Macros: block_h, block_w (rows and columns of what is read, so that what is read and written of it stays in a cache), tile_h, tile_w (the
 * same for what may stay in registers), inner (which of the two runs fastest in a tile: rows or columns).
 */
static inline int least(int a, int b) { return a < b ? a : b; }

#define MOVE(y, x) out[(long)(x) * h + (y)] = in[(long)(y) * w + (x)]

#define EACH(i, from, to) for (int i = (from); i < (to); i++)
#define columns(y, y_end, x, x_end) EACH(j, y, y_end) EACH(i, x, x_end) MOVE(j, i)
#define rows(y, y_end, x, x_end) EACH(i, x, x_end) EACH(j, y, y_end) MOVE(j, i)

static inline void tile(float *restrict out, const float *restrict in, int h, int w, int y, int x, int y_end, int x_end) {
    if (y + tile_h <= y_end && x + tile_w <= x_end) {
        /* The sizes of a whole tile are known to the compiler. */
        inner(y, y + tile_h, x, x + tile_w);
    } else {
        inner(y, least(y + tile_h, y_end), x, least(x + tile_w, x_end));
    }
}

void transpose(float *restrict out, const float *restrict in, int h, int w) {
    for (int by = 0; by < h; by += block_h) {
        for (int bx = 0; bx < w; bx += block_w) {
            const int y_end = least(by + block_h, h), x_end = least(bx + block_w, w);
            for (int y = by; y < y_end; y += tile_h) {
                for (int x = bx; x < x_end; x += tile_w) {
                    tile(out, in, h, w, y, x, y_end, x_end);
                }
            }
        }
    }
}
