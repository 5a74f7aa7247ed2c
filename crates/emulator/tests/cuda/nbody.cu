// Accelerations of bodies that attract each other: float4 loads, reciprocal square roots, a tile in shared memory.
extern "C" __global__ void nbody(const float4 *bodies, float4 *out, int n) {
    __shared__ float4 tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = bodies[i < n ? i : 0];
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (int at = 0; at < n; at += 64) {
        int j = at + threadIdx.x;
        tile[threadIdx.x] = j < n ? bodies[j] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        __syncthreads();
        for (int k = 0; k < 64; k++) {
            float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
            float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
            float s = tile[k].w * r * r * r;
            ax += dx * s;
            ay += dy * s;
            az += dz * s;
        }
        __syncthreads();
    }
    if (i < n) out[i] = make_float4(ax, ay, az, 0.0f);
}
