// Transpose through a padded tile of shared memory.
extern "C" __global__ void transpose(const double *in, double *out, int rows, int columns) {
    __shared__ double tile[16][17];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < columns && y < rows) tile[threadIdx.y][threadIdx.x] = in[y * columns + x];
    __syncthreads();
    int tx = blockIdx.y * 16 + threadIdx.x, ty = blockIdx.x * 16 + threadIdx.y;
    if (tx < rows && ty < columns) out[ty * rows + tx] = tile[threadIdx.x][threadIdx.y];
}
