#pragma once
#include <cstdint>

namespace cudp {

enum class Generator : int { chacha20, philox };

/// 256-bit key. ChaCha20 uses all of it. Philox4x32-10 uses the first two words as cuRAND's 64-bit
/// seed (low word first).
struct RandomKey {
  std::uint32_t words[8];
};

/// Purpose of a random stream; the streams drawn with one key differ in it. The value is part of
/// the generator's nonce, so it must never be reused for another purpose. Values stay below 256,
/// because the bits above number further streams of the same purpose.
enum class Stream : std::uint32_t {
  sampling = 1,
  noise = 2,
  initial_weights = 3,
  dataset_size = 4,
  /// Second stage of importance sampling, which accepts or rejects the examples drawn in the first
  /// stage.
  acceptance = 5,
  /// Noise on the sum of all examples' gradient norms, at the start of an epoch.
  norm_total = 6,
  largest_norms = 7,     ///< noise on the sum of norms that determines the next clipping norm
  selection = 8,         ///< noise on scores, of which the best is chosen
  covariance = 9,        ///< noise on a covariance, whose eigenvectors become features
  channel_moments = 10,  ///< noise on the moments used to standardise channels of features
  clipped_count = 11,    ///< noise on the number of gradients of a batch that were not clipped
  holdout_figures = 12,  ///< noise on test results of held-out rows
  allocation = 13        ///< step of an epoch that an example is used in
};

/// One stream of 32-bit words, addressed by position, equal on every backend.
///
/// Words come in tiles of 256, made of 16 generator blocks of 16 words each:
///   word number i:  tile i / 256, row r = (i % 256) / 16, lane l = i % 16,
///   is word r of block 16 (i / 256) + l.
/// A SIMD register (or 16 neighbouring threads) contains the same word of 16 blocks, so tiles are
/// written without a transpose.
///   ChaCha20 (RFC 8439): key, 32-bit block counter, nonce {stream, step low, step high}.
///   Philox4x32-10: word r of block n is word r % 4 of counter {4 n + r / 4, n >> 30, step low,
///   stream}, which is what cuRAND draws after
///   curand_init(key, stream << 32 | step low, 4 (4 n + r / 4)).
/// Block numbers have 32 bits, so a stream has 2^36 words. Philox distinguishes steps below 2^32.
struct RandomStream {
  Generator generator;
  RandomKey key;
  Stream stream;
  std::uint64_t step;
};

/// Checks a range of a stream's words, begin <= i < end. Throws std::invalid_argument unless begin
/// and end are in 0..2^36, begin is a multiple of 256, and the generator can distinguish the
/// stream's step.
void validate(const RandomStream& stream, std::int64_t begin, std::int64_t end);

// Normal number i of a stream is in row r of its tile. It is computed by Box-Muller from the words
// a and b in rows 2p and 2p + 1 of the same tile and lane, p = r / 2, with 40 bits for the radius
// and 24 for the angle:
//   u = (256 a + b % 256 + 1/2) / 2^40,  w = (b / 256 + 1/2) / 2^24,
//   z = sqrt(-2 ln u) cos 2 pi w in even rows, sqrt(-2 ln u) sin 2 pi w in odd ones.
// So |z| <= sqrt(82 ln 2) = 7.54.
//
// Example i is in a step's Poisson sample if its 32 bits of the step's sampling stream are below
// `threshold`, in 0..2^32. kernels/step/sample.hpp defines these bits. The rate is threshold / 2^32
// exactly.

}  // namespace cudp
