// Matrix times vector in half precision with sums in single, vector loads, a block for each row.
#include <cuda_fp16.h>

extern "C" __global__ void matvec(const __half2 *a, const __half2 *x, float *y, int pairs) {
    __shared__ float part[4];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
        float2 f = __half22float2(a[(size_t)blockIdx.x * pairs + i]), g = __half22float2(x[i]);
        sum += f.x * g.x + f.y * g.y;
    }
    for (int d = 16; d > 0; d >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) y[blockIdx.x] = part[0] + part[1] + part[2] + part[3];
}
