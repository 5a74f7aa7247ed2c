/* The sum of n numbers.
 *
 * Macros: accumulators (sums that do not wait for each other; the compiler may put them into vectors), streams (places of the array that
 * are read side by side), block (numbers of a stream that are added in single precision before the sum goes to the total), prefetch (how
 * many numbers ahead a line is asked for, or 0).
 */
static inline void add(float *restrict parts, const float *restrict at) {
    for (int i = 0; i < accumulators; i++) {
        parts[i] += at[i];
    }
#if prefetch
    /* A line holds 16 numbers. An address beyond the array is only a hint, and does no harm. */
    for (int i = 0; i < accumulators; i += 16) {
        __builtin_prefetch((const char *)at + 4L * (prefetch + i));
    }
#endif
}

/* The sums of `block` numbers from each of the streams. */
static double blocks(const float *restrict in, long apart) {
    float parts[streams][accumulators] = {{0.0f}};
    for (int i = 0; i < block; i += accumulators) {
        for (int s = 0; s < streams; s++) {
            add(parts[s], in + s * apart + i);
        }
    }
    double total = 0.0;
    for (int s = 0; s < streams; s++) {
        for (int i = 0; i < accumulators; i++) {
            total += parts[s][i];
        }
    }
    return total;
}

void reduction(float *restrict sum, const float *restrict in, int n) {
    /* Every stream has as many whole blocks; what is left comes last. */
    const long apart = (long)n / ((long)streams * block) * block;
    double total = 0.0;
    for (long i = 0; i < apart; i += block) {
        total += blocks(in + i, apart);
    }
    for (long i = apart * streams; i < n; i++) {
        total += in[i];
    }
    *sum = (float)total;
}
