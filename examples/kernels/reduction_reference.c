/* The sum as it is defined, one number after the other, in double precision. */
void reduction_reference(float *sum, const float *in, int n) {
    double total = 0.0;
    for (int i = 0; i < n; i++) {
        total += in[i];
    }
    *sum = (float)total;
}

/* A reference has the arguments of its kernel: this is for one that keeps the sums of its blocks in memory. */
void reduction_reference_with_parts(float *sum, float *parts, const float *in, int n) {
    (void)parts;
    reduction_reference(sum, in, n);
}
