// Functions of the compiler's library, some of which it calls instead of inlining them.
extern "C" __global__ void math(const double* x, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double v = x[i];
    out[6 * i] = pow(fabs(v) + 0.1, 1.7);
    out[6 * i + 1] = sin(v * 1e6);
    out[6 * i + 2] = exp(v);
    out[6 * i + 3] = log(fabs(v) + 1);
    out[6 * i + 4] = atan2(v, 2.0);
    out[6 * i + 5] = powf((float)fabs(v) + 0.5f, 2.3f);
}
