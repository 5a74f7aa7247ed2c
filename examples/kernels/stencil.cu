// A stencil of five points on a grid of h x w, rows one after the other; the border stays as it is.
//
// Macros: block_size_x, block_size_y (threads of a block), tile_x, tile_y (cells of a thread along each axis), use_shared (whether a
// block shares the cells that it reads).

__constant__ float weights[2];

#define ROWS (block_size_y * tile_y)
#define COLUMNS (block_size_x * tile_x)

extern "C" __global__ void stencil(float *out, const float *in, int h, int w) {
    const int y0 = blockIdx.y * ROWS, x0 = blockIdx.x * COLUMNS;
#if use_shared
    __shared__ float cells[ROWS + 2][COLUMNS + 2];
    for (int r = threadIdx.y; r < ROWS + 2; r += block_size_y) {
        for (int c = threadIdx.x; c < COLUMNS + 2; c += block_size_x) {
            const int y = y0 + r - 1, x = x0 + c - 1;
            cells[r][c] = y >= 0 && y < h && x >= 0 && x < w ? in[y * w + x] : 0.0f;
        }
    }
    __syncthreads();
#define CELL(dy, dx) cells[r + 1 + (dy)][c + 1 + (dx)]
#else
#define CELL(dy, dx) in[(y + (dy)) * w + x + (dx)]
#endif
#pragma unroll
    for (int i = 0; i < tile_y; i++) {
#pragma unroll
        for (int j = 0; j < tile_x; j++) {
            const int r = threadIdx.y + i * block_size_y, c = threadIdx.x + j * block_size_x;
            const int y = y0 + r, x = x0 + c;
            if (y < h && x < w) {
                const bool border = y == 0 || x == 0 || y == h - 1 || x == w - 1;
                out[y * w + x] = border ? CELL(0, 0) : weights[0] * CELL(0, 0) + weights[1] * (CELL(-1, 0) + CELL(1, 0) + CELL(0, -1) + CELL(0, 1));
            }
        }
    }
}
