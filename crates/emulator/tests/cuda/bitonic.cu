// Bitonic sort of each block's segment of unsigned integers.
extern "C" __global__ void bitonic(unsigned int *data) {
    __shared__ unsigned int s[512];
    int t = threadIdx.x;
    unsigned int *mine = data + blockIdx.x * 512;
    s[t] = mine[t];
    s[t + 256] = mine[t + 256];
    for (int size = 2; size <= 512; size *= 2) {
        for (int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            int i = 2 * t - (t & (stride - 1));
            bool up = (i & size) == 0;
            unsigned int a = s[i], b = s[i + stride];
            if ((a > b) == up) {
                s[i] = b;
                s[i + stride] = a;
            }
        }
    }
    __syncthreads();
    mine[t] = s[t];
    mine[t + 256] = s[t + 256];
}
