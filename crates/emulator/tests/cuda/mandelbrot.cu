// Iterations until a point escapes: lanes leave the loop at different times. Sine and cosine place the points.
extern "C" __global__ void mandelbrot(int *out, int width, int height, int most) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float cx = -2.0f + 3.0f * x / width, cy = -1.0f + 2.0f * y / height, zx = 0.0f, zy = 0.0f;
    int i = 0;
    while (i < most && zx * zx + zy * zy < 4.0f) {
        float next = zx * zx - zy * zy + cx;
        zy = 2.0f * zx * zy + cy;
        zx = next;
        i++;
    }
    switch (i % 5) {
    case 0: out[y * width + x] = i; break;
    case 1: out[y * width + x] = i * 2; break;
    case 2: out[y * width + x] = i / 3; break;
    case 3: out[y * width + x] = -i; break;
    default: out[y * width + x] = i ^ 0x55; break;
    }
}
