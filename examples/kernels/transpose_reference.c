/* The transposition as it is defined: what stands in row y and column x comes to row x and column y. */
void transpose_reference(float *out, const float *in, int h, int w) {
    for (long y = 0; y < h; y++) {
        for (long x = 0; x < w; x++) {
            out[x * h + y] = in[y * w + x];
        }
    }
}
