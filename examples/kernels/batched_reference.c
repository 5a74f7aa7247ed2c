/* The products as they are defined, in double precision: c = a b for each of `count` pairs of matrices, which stand one after the other,
   rows one after the other. */
void batched_reference(float *c, const float *a, const float *b, int m, int n, int k, int count) {
    for (long at = 0; at < count; at++) {
        for (long i = 0; i < m; i++) {
            for (long j = 0; j < n; j++) {
                double sum = 0.0;
                for (long p = 0; p < k; p++) {
                    sum += (double)a[(at * m + i) * k + p] * b[(at * k + p) * n + j];
                }
                c[(at * m + i) * n + j] = (float)sum;
            }
        }
    }
}
