// Softmax of each row by one block: maximum, sum of exponentials, division.
extern "C" __global__ void softmax(const float *in, float *out, int columns) {
    __shared__ float part[128];
    const float *row = in + (size_t)blockIdx.x * columns;
    int t = threadIdx.x;
    float top = __int_as_float(0xff800000);
    for (int i = t; i < columns; i += blockDim.x) top = fmaxf(top, row[i]);
    part[t] = top;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s) part[t] = fmaxf(part[t], part[t + s]);
        __syncthreads();
    }
    top = part[0];
    __syncthreads();
    float sum = 0.0f;
    for (int i = t; i < columns; i += blockDim.x) sum += expf(row[i] - top);
    part[t] = sum;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s) part[t] += part[t + s];
        __syncthreads();
    }
    sum = part[0];
    for (int i = t; i < columns; i += blockDim.x) out[(size_t)blockIdx.x * columns + i] = expf(row[i] - top) / sum;
}
