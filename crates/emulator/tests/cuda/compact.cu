// Keeps the positive numbers: ballots count within warps, one atomic per warp reserves room. The order is free.
extern "C" __global__ void compact(const int *in, int *out, int *count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    bool keep = i < n && in[i] > 0;
    unsigned int kept = __ballot_sync(0xffffffffu, keep);
    int base = 0;
    if (lane == 0 && kept != 0) base = atomicAdd(count, __popc(kept));
    base = __shfl_sync(0xffffffffu, base, 0);
    if (keep) out[base + __popc(kept & ((1u << lane) - 1))] = in[i];
}
