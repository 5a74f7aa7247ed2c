// Products of many small matrices: c = a b for each of `count` pairs, which stand one after the other, rows one after the other.
//
// A block has a place for each of some pairs, and each place makes a tile of its c. Macros: block_size_x, block_size_y (threads of a place),
// matrices (places), tile_m, tile_n (rows and columns of c that a thread holds in registers), step (columns of a that are in shared memory
// at once), buffers (1, or 2: the next step is loaded while this one is computed), copy (how numbers come to shared memory: by_registers,
// or by_copies that need no registers and that a thread need not wait for).

#define ROWS (block_size_y * tile_m)
#define COLUMNS (block_size_x * tile_n)
#define THREADS (block_size_x * block_size_y)

__device__ void by_registers(float *to, const float *from) { *to = *from; }

__device__ void by_copies(float *to, const float *from) {
    const unsigned place = __cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(place), "l"(from) : "memory");
}

// Waits until this thread's copies are there.
__device__ void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// The two operands of a step.
struct Step {
    float a[ROWS][step];
    float b[step][COLUMNS];
};

// Brings columns p.. of a and rows p.. of b; what lies beyond the matrices is zero.
__device__ void bring(Step &to, const float *a, const float *b, int m, int n, int k, int row, int column, int p) {
    const int thread = threadIdx.y * block_size_x + threadIdx.x;
    for (int at = thread; at < ROWS * step; at += THREADS) {
        const int y = at / step, x = at % step;
        if (row + y < m && p + x < k) {
            copy(&to.a[y][x], &a[(row + y) * k + p + x]);
        } else {
            to.a[y][x] = 0.0f;
        }
    }
    for (int at = thread; at < step * COLUMNS; at += THREADS) {
        const int y = at / COLUMNS, x = at % COLUMNS;
        if (p + y < k && column + x < n) {
            copy(&to.b[y][x], &b[(p + y) * n + column + x]);
        } else {
            to.b[y][x] = 0.0f;
        }
    }
}

__device__ void multiply(float (&sums)[tile_m][tile_n], const Step &of) {
#pragma unroll
    for (int p = 0; p < step; p++) {
#pragma unroll
        for (int i = 0; i < tile_m; i++) {
#pragma unroll
            for (int j = 0; j < tile_n; j++) {
                sums[i][j] += of.a[threadIdx.y + i * block_size_y][p] * of.b[p][threadIdx.x + j * block_size_x];
            }
        }
    }
}

extern "C" __global__ void batched(float *c, const float *a, const float *b, int m, int n, int k, int count) {
    __shared__ Step steps[matrices][buffers];
    Step *own = steps[threadIdx.z];
    const int row = blockIdx.y * ROWS, column = blockIdx.z * COLUMNS;
    const long at = (long)blockIdx.x * matrices + threadIdx.z;
    // A place without a pair takes part in the barriers, and brings zeros.
    const int height = at < count ? m : 0, width = at < count ? n : 0;
    a += at * m * k;
    b += at * k * n;
    c += at * m * n;
    float sums[tile_m][tile_n];
#pragma unroll
    for (int i = 0; i < tile_m; i++) {
#pragma unroll
        for (int j = 0; j < tile_n; j++) {
            sums[i][j] = 0.0f;
        }
    }
    bring(own[0], a, b, height, width, k, row, column, 0);
    for (int p = 0, now = 0; p < k; p += step) {
        wait_for_copies();
        __syncthreads();
#if buffers == 2
        if (p + step < k) {
            bring(own[1 - now], a, b, height, width, k, row, column, p + step);
        }
        multiply(sums, own[now]);
        now = 1 - now;
#else
        multiply(sums, own[now]);
        __syncthreads();
        if (p + step < k) {
            bring(own[now], a, b, height, width, k, row, column, p + step);
        }
#endif
    }
#pragma unroll
    for (int i = 0; i < tile_m; i++) {
#pragma unroll
        for (int j = 0; j < tile_n; j++) {
            const int y = row + threadIdx.y + i * block_size_y, x = column + threadIdx.x + j * block_size_x;
            if (y < height && x < width) {
                c[y * n + x] = sums[i][j];
            }
        }
    }
}
