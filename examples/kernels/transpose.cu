// The transposition of h x w numbers, rows one after the other.
//
// Macros: block_size_x, block_size_y (threads of a block), padding (numbers that a row of the tile in shared memory is longer by, so that
// a column of it does not lie in one bank), use_shared (whether a block exchanges its numbers through shared memory, so that its threads
// write neighbours too). The description makes vector and rows the template's parameters: `width` numbers are loaded and stored at once
// where rows allow it, and each thread reads `lines` rows.

template <int width> struct alignas(width * sizeof(float)) Numbers {
    float at[width];
};

// Loads neighbours; beyond the end of the row nothing is read.
template <int width> __device__ Numbers<width> load(const float *row, int x, int end) {
    Numbers<width> numbers;
    if (end % width == 0 && x + width <= end) {
        return *reinterpret_cast<const Numbers<width> *>(row + x);
    }
#pragma unroll
    for (int i = 0; i < width; i++) {
        numbers.at[i] = x + i < end ? row[x + i] : 0.0f;
    }
    return numbers;
}

template <int width> __device__ void store(float *row, int x, int end, const Numbers<width> &numbers) {
    if (end % width == 0 && x + width <= end) {
        *reinterpret_cast<Numbers<width> *>(row + x) = numbers;
        return;
    }
#pragma unroll
    for (int i = 0; i < width; i++) {
        if (x + i < end) {
            row[x + i] = numbers.at[i];
        }
    }
}

template <int width, int lines> __global__ void transpose(float *out, const float *in, int h, int w) {
    const int tile_h = block_size_y * lines, tile_w = block_size_x * width;
    const int y0 = blockIdx.y * tile_h, x0 = blockIdx.x * tile_w;
#if use_shared
    extern __shared__ float tile[];
    const int pitch = tile_w + padding;
#pragma unroll
    for (int line = 0; line < lines; line++) {
        const int r = threadIdx.y + line * block_size_y, c = threadIdx.x * width;
        if (y0 + r < h) {
            const Numbers<width> numbers = load<width>(in + (long)(y0 + r) * w, x0 + c, w);
#pragma unroll
            for (int i = 0; i < width; i++) {
                tile[r * pitch + c + i] = numbers.at[i];
            }
        }
    }
    __syncthreads();
    // The threads of the block, one after the other along the columns of the tile, which are rows of the result.
    const int thread = threadIdx.y * block_size_x + threadIdx.x, groups = tile_h / width;
    for (int i = thread; i < tile_w * groups; i += block_size_x * block_size_y) {
        const int c = i / groups, r = i % groups * width;
        if (x0 + c < w && y0 + r < h) {
            Numbers<width> numbers;
#pragma unroll
            for (int j = 0; j < width; j++) {
                numbers.at[j] = y0 + r + j < h ? tile[(r + j) * pitch + c] : 0.0f;
            }
            store<width>(out + (long)(x0 + c) * h, y0 + r, h, numbers);
        }
    }
#else
#pragma unroll
    for (int line = 0; line < lines; line++) {
        const int y = y0 + threadIdx.y + line * block_size_y, x = x0 + threadIdx.x * width;
        if (y < h && x < w) {
            const Numbers<width> numbers = load<width>(in + (long)y * w, x, w);
#pragma unroll
            for (int i = 0; i < width; i++) {
                if (x + i < w) {
                    out[(long)(x + i) * h + y] = numbers.at[i];
                }
            }
        }
    }
#endif
}
