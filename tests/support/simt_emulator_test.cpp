// The emulator is judged by kernels with seeded bugs, each beside the right version.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/copy_async.cuh"
#include "kernels/common/dependent.cuh"
#include "kernels/common/half_core.cuh"
#include "kernels/common/named_barrier.cuh"
#include "kernels/common/simt.cuh"
#include "kernels/common/tensor_core.cuh"

namespace cudp {
namespace {

/// What a run says; empty if it says nothing.
std::string complaint(const std::function<void()>& run) {
  try {
    run();
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "";
}

#define EXPECT_SAYS(text, ...)                                         \
  do {                                                                 \
    const std::string said = complaint([&] { __VA_ARGS__; });          \
    EXPECT_NE(said.find(text), std::string::npos) << "said: " << said; \
  } while (false)

// --- Indices, shapes, shared memory ---

__global__ void number_all(int* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  ++out[block * blockDim.x * blockDim.y * blockDim.z + thread];
}

TEST(Simt, EveryThreadOfEveryBlockRunsOnce) {
  std::vector<int> count(1440);  // 12 blocks of 120
  simt::launch(number_all, dim3(2, 3, 2), dim3(4, 5, 6), 0, {}, count.data());
  for (const int c : count) EXPECT_EQ(c, 1);

  std::vector<int> alone(1440);
  simt::launch(number_all, dim3(1440), dim3(1), 0, {.blocks_in_flight = 2}, alone.data());
  for (const int c : alone) EXPECT_EQ(c, 1);
}

__global__ void nothing() {}

TEST(Simt, RefusesShapesThatCudaRefuses) {
  EXPECT_SAYS("grid (0,1,1)", simt::launch(nothing, dim3(0), dim3(32), 0, {}));
  EXPECT_SAYS("block (1025,1,1)", simt::launch(nothing, dim3(1), dim3(1025), 0, {}));
  EXPECT_SAYS("49153 bytes", simt::launch(nothing, dim3(1), dim3(32), 49153, {}));
}

template <bool with_barrier>
__global__ void reverse(const int* in, int* out, int n) {
  CUDP_DYNAMIC_SMEM(int, tile);
  const int t = static_cast<int>(threadIdx.x), base = static_cast<int>(blockIdx.x) * n;
  tile[t] = in[base + t];
  if (with_barrier) __syncthreads();
  out[base + t] = tile[n - 1 - t];
}

template <bool with_barrier>
bool reverses(unsigned seed) {
  constexpr std::size_t kThreads = 96, kBlocks = 5;
  std::vector<int> in(kThreads * kBlocks), out(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i);
  simt::launch(reverse<with_barrier>, dim3(kBlocks), dim3(kThreads), kThreads * sizeof(int),
               {.seed = seed}, in.data(), out.data(), static_cast<int>(kThreads));
  for (std::size_t b = 0; b < kBlocks; ++b)
    for (std::size_t t = 0; t < kThreads; ++t)
      if (out[b * kThreads + t] != in[b * kThreads + kThreads - 1 - t]) return false;
  return true;
}

TEST(Simt, FindsAMissingBarrier) {
  for (unsigned seed = 1; seed <= 10; ++seed) EXPECT_TRUE(reverses<true>(seed));
  if (simt::races_end_the_program()) GTEST_SKIP() << "TSan would report the race";
  EXPECT_FALSE(reverses<false>(1));
}

/// Every warp writes after many warp operations, and the first one reads after many more.
template <bool with_barrier>
__global__ void read_late(int* out) {
  CUDP_SHARED(int, part, [16]);
  const auto warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int one = 1;
  for (int i = 0; i < 100; ++i) one = __shfl_xor_sync(0xffffffffu, one, 1);
  if (lane == 0) part[warp] = one;
  if (with_barrier) __syncthreads();
  if (warp > 0) return;
  for (int i = 0; i < 300; ++i) one = __shfl_xor_sync(0xffffffffu, one, 1);
  if (lane < 16) out[lane] = part[lane];
}

TEST(Simt, FindsAMissingBarrierWhoseReaderComesLate) {
  const auto all_ones = [](auto* kernel, unsigned seed) {
    std::vector<int> out(16);
    simt::launch(kernel, dim3(1), dim3(512), 0, {.seed = seed}, out.data());
    return out == std::vector<int>(16, 1);
  };
  for (unsigned seed = 1; seed <= 10; ++seed) EXPECT_TRUE(all_ones(read_late<true>, seed));
  if (simt::races_end_the_program()) GTEST_SKIP() << "TSan would report the race";
  int found = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) found += all_ones(read_late<false>, seed) ? 0 : 1;
  EXPECT_GE(found, 2) << "of 20 schedules";
}

__global__ void read_uninitialised(float* out, int* key) {
  CUDP_SHARED(float, fixed, [2][32]);
  CUDP_DYNAMIC_SMEM(int, dynamic);
  out[threadIdx.x] = fixed[1][threadIdx.x];
  key[threadIdx.x] = dynamic[threadIdx.x];
  __syncthreads();
  fixed[1][threadIdx.x] = 1.0f;  // the next block must not see this
  dynamic[threadIdx.x] = 1;
}

TEST(Simt, SharedMemoryStartsPoisonedInEveryBlock) {
  std::vector<float> out(32);
  std::vector<int> key(32);
  simt::launch(read_uninitialised, dim3(1), dim3(32), 128, {}, out.data(), key.data());
  simt::launch(read_uninitialised, dim3(3), dim3(32), 128, {.blocks_in_flight = 1}, out.data(),
               key.data());
  for (int i = 0; i < 32; ++i) {
    EXPECT_TRUE(std::isnan(out[i]));
    EXPECT_EQ(key[i], -1);
  }
}

__global__ void overrun() {
  CUDP_DYNAMIC_SMEM(volatile int, tile);
  tile[threadIdx.x + 1] = 0;
}
__global__ void overrun_fixed(int at) {
  CUDP_SHARED(volatile int, tile, [32]);
  tile[at] = 0;
}
TEST(Simt, FindsWritesPastSharedMemory) {
  if (simt::overruns_end_the_program()) GTEST_SKIP() << "ASan would end the program";
  EXPECT_SAYS("past the end", simt::launch(overrun, dim3(1), dim3(32), 128, {}));
  EXPECT_SAYS("past the end", simt::launch(overrun_fixed, dim3(1), dim3(1), 0, {}, 32));
}

__global__ void addresses(std::uintptr_t* out) {
  CUDP_DYNAMIC_SMEM(double, dynamic);
  CUDP_SHARED(float, fixed, [3]);
  out[0] = reinterpret_cast<std::uintptr_t>(dynamic);
  out[1] = reinterpret_cast<std::uintptr_t>(&fixed);
}
TEST(Simt, SharedMemoryIsAlignedAsAskedAndNoBetter) {
  std::uintptr_t at[2] = {};
  simt::launch(addresses, dim3(1), dim3(1), 8, {}, +at);
  EXPECT_EQ(at[0] % 32, 16u);
  EXPECT_EQ(at[1] % 8, 4u);
}

__global__ void two_large_arrays() {
  CUDP_SHARED(float, a, [8192]);
  CUDP_SHARED(float, b, [8192]);
  a[0] = b[0] = 0.0f;
}
TEST(Simt, AddsUpStaticSharedMemory) {
  EXPECT_SAYS("65536 bytes", simt::launch(two_large_arrays, dim3(1), dim3(1), 0, {}));
}

// --- Barriers ---

__global__ void early_exit() {
  if (threadIdx.x == 5) return;
  __syncthreads();
}
__global__ void different_barriers() {
  if (threadIdx.x < 32)  // NOLINT(bugprone-branch-clone): two barriers are the bug
    __syncthreads();
  else
    __syncthreads();
}
__global__ void barrier_against_warp() {
  if (threadIdx.x == 0)
    __syncthreads();
  else
    __syncwarp();
}

TEST(Simt, FindsBarrierDivergence) {
  EXPECT_SAYS("thread (5,0,0) has exited", simt::launch(early_exit, dim3(2), dim3(64), 0, {}));
  EXPECT_SAYS("simt_emulator_test.cpp:",
              simt::launch(different_barriers, dim3(1), dim3(64), 0, {}));
  EXPECT_SAYS("names a lane elsewhere: thread (0,0,0) is at __syncthreads",
              simt::launch(barrier_against_warp, dim3(1), dim3(32), 0, {}));
  EXPECT_TRUE(reverses<true>(1)) << "the emulator works after an error";
}

/// Two halves of a block, each of which passes numbers on by a barrier of its own, `left` times.
template <bool waits>
__global__ void two_halves(int left, int* out) {
  CUDP_SHARED(int, number, [2][128]);
  const auto thread = static_cast<int>(threadIdx.x);
  const int half = thread / 64, own = thread % 64;
  int value = thread;
  for (int step = 0; step < left * (1 + half); ++step) {  // one goes on longer than the other
    number[step % 2][thread] = value;
    if constexpr (waits) named_barrier<64>(1 + half);
    value = number[step % 2][64 * half + (own + 33) % 64] + 1;
  }
  out[thread] = value;
}
__global__ void too_few_meet() {
  if (threadIdx.x < 32) named_barrier<64>(3);
}
__global__ void counts_differ() {
  if (threadIdx.x < 32)
    named_barrier<64>(3);
  else
    named_barrier<96>(3);
}
__global__ void no_such_barrier() { named_barrier<64>(16); }

TEST(Simt, NamedBarriersOrderTheirWarpsAlone) {
  const auto run = [](auto kernel, unsigned seed) {
    std::vector<int> out(128);
    simt::launch(kernel, dim3(1), dim3(128), 0, {.seed = seed}, 5, out.data());
    return out;
  };
  std::vector<int> want(128);
  for (int thread = 0; thread < 128; ++thread) {
    const int half = thread / 64, steps = 5 * (1 + half);
    want[static_cast<std::size_t>(thread)] = 64 * half + (thread % 64 + 33 * steps) % 64 + steps;
  }
  bool differs = false;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(run(two_halves<true>, seed), want);
    if (!simt::races_end_the_program()) differs = differs || run(two_halves<false>, seed) != want;
  }
  EXPECT_TRUE(differs || simt::races_end_the_program()) << "without barriers";
  EXPECT_SAYS("too few threads", simt::launch(too_few_meet, dim3(1), dim3(64), 0, {}));
  EXPECT_SAYS("another number of threads", simt::launch(counts_differ, dim3(1), dim3(96), 0, {}));
  EXPECT_SAYS("no named barrier 16", simt::launch(no_such_barrier, dim3(1), dim3(64), 0, {}));
}

// --- Warp operations ---

__global__ void shuffles(double* sum, int* up, std::uint64_t* down, unsigned* votes) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const unsigned i = threadIdx.x;
  sum[i] = warp_sum(0.5 * lane);
  up[i] = __shfl_up_sync(kFullWarp, lane, 3, 8);
  down[i] = __shfl_down_sync(kFullWarp, (std::uint64_t{1} << 40) + lane, 1);
  votes[i] = __ballot_sync(kFullWarp, lane % 3 == 0);
  if (lane < 16) votes[i] += __shfl_sync(0xffffu, 1u, 15);  // half a warp, on its own
}

TEST(Simt, WarpOperationsFollowTheManual) {
  std::vector<double> sum(64);
  std::vector<int> up(64);
  std::vector<std::uint64_t> down(64);
  std::vector<unsigned> votes(64);
  simt::launch(shuffles, dim3(1), dim3(64), 0, {}, sum.data(), up.data(), down.data(),
               votes.data());
  for (unsigned i = 0; i < 64; ++i) {
    const int lane = static_cast<int>(i % 32);
    EXPECT_EQ(sum[i], 0.5 * 31 * 16);
    EXPECT_EQ(up[i], lane % 8 < 3 ? lane : lane - 3);
    EXPECT_EQ(down[i], (std::uint64_t{1} << 40) + static_cast<unsigned>(lane < 31 ? lane + 1 : 31));
    EXPECT_EQ(votes[i], 0x49249249u + (lane < 16 ? 1u : 0u));
  }
}

__global__ void wrong_mask(int kind, int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  if (kind == 0 && lane < 16) out[lane] = __shfl_xor_sync(kFullWarp, lane, 1);
  if (kind == 1) out[lane] = __shfl_xor_sync(0xfffffffeu, lane, 1);
  if (kind == 2 && lane < 16) out[lane] = __shfl_sync(0xffffu, lane, 20);
  if (kind == 3) out[lane] = __any_sync(lane < 16 ? 0xffffu : kFullWarp, 1);
  if (kind == 4) __syncwarp();
}

TEST(Simt, FindsWrongMasks) {
  std::vector<int> out(32);
  const auto run = [&](int kind, unsigned threads) {
    simt::launch(wrong_mask, dim3(1), dim3(threads), 0, {}, kind, out.data());
  };
  EXPECT_SAYS("has exited", run(0, 32));
  EXPECT_SAYS("mask leaves it out", run(1, 32));
  EXPECT_SAYS("shuffles from lane 20", run(2, 32));
  EXPECT_SAYS("thread (", run(3, 32));
  EXPECT_SAYS("lane 16, which does not exist", run(4, 16));
}

__global__ void multiply_by_tensor_core(float operand, unsigned lanes) {
  const float a[4] = {operand, operand, operand, operand};
  const float b[2] = {1.0f, 1.0f};
  float d[4] = {};
  if (threadIdx.x < lanes) mma_tf32(d, d + 2, a, b);
}

/// A device would ignore the bits that should have been rounded off, and hang or worse without a
/// whole warp.
TEST(Simt, FindsWrongUsesOfTensorCores) {
  const auto multiply = [](float operand, unsigned lanes) {
    simt::launch(multiply_by_tensor_core, dim3(1), dim3(32), 0, {}, operand, lanes);
  };
  EXPECT_EQ(complaint([&] { multiply(1.0f + 0x1p-10f, 32); }), "");
  EXPECT_SAYS("not rounded to TF32", multiply(1.0f + 0x1p-11f, 32));
  EXPECT_SAYS("has exited", multiply(1.0f, 31));
}

enum class LoadBug { none, misaligned, not_shared, diverged, no_barrier };

/// out: register 0 of a matrix that is loaded four times. Its row r lies at 8 pitch r halves and
/// holds r.
template <LoadBug bug>
__global__ void load_one_matrix(int pitch, unsigned* out) {
  CUDP_SHARED(Four, rows, [64]);
  auto* const shared = reinterpret_cast<std::uint16_t*>(&rows[0]);
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = lane; i < 512; i += 32)
    shared[i] = static_cast<std::uint16_t>(pitch == 0 ? 0 : i / 8 / pitch);
  if (bug != LoadBug::no_barrier) __syncwarp();
  const std::uint16_t own[8] = {};
  u32 r[4] = {};
  const void* const row = bug == LoadBug::not_shared   ? own
                          : bug == LoadBug::misaligned ? shared + 8 * pitch * (lane % 8) + 4
                                                       : shared + 8 * pitch * (lane % 8);
  if (bug == LoadBug::diverged && lane < 16)
    ldmatrix_x4(r, row);
  else
    ldmatrix_x4(r, row);
  out[lane] = r[0];
}

template <LoadBug bug>
std::vector<unsigned> load_one(int pitch = 1) {
  std::vector<unsigned> out(32);
  simt::launch(load_one_matrix<bug>, dim3(1), dim3(32), 0, {}, pitch, out.data());
  return out;
}

TEST(Simt, FindsWrongLoadsOfMatrices) {
  const std::vector<unsigned> out = load_one<LoadBug::none>();
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], lane / 4 * 0x10001u);
  EXPECT_SAYS("16 bytes that is not aligned", load_one<LoadBug::misaligned>());
  EXPECT_SAYS("not in shared memory", load_one<LoadBug::not_shared>());
  EXPECT_SAYS("another mask or operation", load_one<LoadBug::diverged>());
  if (simt::races_end_the_program()) GTEST_SKIP() << "TSan would report the race";
  EXPECT_NE(load_one<LoadBug::no_barrier>(), out);
}

TEST(Simt, CountsBankConflictsOfLoads) {
  // Rows that are 16 pitch bytes apart: passes beyond the first.
  for (const auto& [pitch, conflicts] : {std::pair{1, 0}, {2, 1}, {3, 0}, {4, 3}, {8, 7}, {0, 0}}) {
    simt::matrix_loads.clear();
    load_one<LoadBug::none>(pitch);
    ASSERT_EQ(simt::matrix_loads.size(), 1u);
    const auto& [where, loads] = *simt::matrix_loads.begin();
    EXPECT_NE(std::string(where.first).find("simt_emulator_test"), std::string::npos);
    EXPECT_EQ(loads.matrices, 4);
    EXPECT_EQ(loads.conflicts, 4 * conflicts) << pitch;
  }
}

__global__ void multiply_halves(unsigned lanes, float* out) {
  const u32 a[4] = {0x3c003c00, 0x3c003c00, 0x3c003c00, 0x3c003c00},
            b[2] = {0x3c003c00, 0x3c003c00};
  float d[4] = {};
  if (threadIdx.x < lanes) multiply_add(d, a, b);
  out[threadIdx.x] = d[3];
}

TEST(Simt, AnMmaNeedsTheWholeWarp) {
  std::vector<float> out(32);
  simt::launch(multiply_halves, dim3(1), dim3(32), 0, {}, 32u, out.data());
  EXPECT_EQ(out[31], 16.0f);
  EXPECT_SAYS("has exited",
              simt::launch(multiply_halves, dim3(1), dim3(32), 0, {}, 31u, out.data()));
}

TEST(Simt, HalfWordsHaveTheValuesOfTheirHalves) {
  for (u32 first = 0; first < 0x10000; first += 8) {
    simt::HalfWords words;
    for (u32 i = 0; i < 8; ++i) words[i] = first + i;
    simt::HalfValues values;
    simt::half_values(words, values);
    for (u32 i = 0; i < 8; ++i) {
      const auto expected =
          static_cast<float>(std::bit_cast<_Float16>(static_cast<std::uint16_t>(first + i)));
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(values[i])) << first + i;
        continue;
      }
      EXPECT_EQ(std::bit_cast<u32>(values[i]), std::bit_cast<u32>(expected)) << first + i;
    }
  }
}

template <bool with_sync>
__global__ void pass_through_shared(int* out) {
  CUDP_SHARED(int, tile, [32]);
  tile[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (with_sync) __syncwarp();
  out[threadIdx.x] = tile[31 - threadIdx.x];
}

TEST(Simt, LanesOfAWarpAreNotInLockStep) {
  std::vector<int> out(32);
  simt::launch(pass_through_shared<true>, dim3(1), dim3(32), 0, {}, out.data());
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[i], 31 - i);
  if (simt::races_end_the_program()) GTEST_SKIP() << "TSan would report the race";
  simt::launch(pass_through_shared<false>, dim3(1), dim3(32), 0, {}, out.data());
  bool all = true;
  for (int i = 0; i < 32; ++i) all = all && out[i] == 31 - i;
  EXPECT_FALSE(all);
}

// --- Asynchronous copies ---

enum class CopyBug { none, no_wait, no_barrier, too_early, never_waited };

/// out = the rounds of `in`, reversed, through two halves of shared memory.
template <CopyBug bug>
__global__ void reverse_by_copies(const float* in, float* out, int rounds) {
  CUDP_SHARED(Four, halves, [2][64]);
  const int t = static_cast<int>(threadIdx.x);
  const auto copy = [&](int half, int round, bool inside) {
    copy_four_async(halves[half][t].v, in + std::ptrdiff_t{64 * round + t} * 4, inside);
  };
  copy(0, 0, true);
  for (int r = 0; r < rounds; ++r) {
    if (bug == CopyBug::too_early && r + 1 < rounds) copy((r + 1) % 2, r + 1, true);
    if (bug != CopyBug::no_wait) wait_for_copies();
    if (bug != CopyBug::no_barrier) __syncthreads();
    if (bug != CopyBug::too_early && r + 1 < rounds) copy((r + 1) % 2, r + 1, true);
    for (int i = 0; i < 4; ++i) out[(64 * r + t) * 4 + i] = halves[r % 2][63 - t].v[i];
  }
  if (bug == CopyBug::no_wait) wait_for_copies();
  if (bug == CopyBug::never_waited) copy(0, 0, true);
}

template <CopyBug bug>
bool reverses_by_copies(unsigned seed) {
  constexpr int kRounds = 5;
  std::vector<Four> in(std::size_t{64} * kRounds), out(in.size());
  for (std::size_t i = 0; i < in.size(); ++i)
    for (int j = 0; j < 4; ++j) in[i].v[j] = static_cast<float>(4 * i) + static_cast<float>(j);
  simt::launch(reverse_by_copies<bug>, dim3(1), dim3(64), 0, {.seed = seed}, in[0].v, out[0].v,
               kRounds);
  for (std::size_t i = 0; i < in.size(); ++i)
    for (int j = 0; j < 4; ++j)
      if (!(out[i].v[j] == in[i / 64 * 64 + 63 - i % 64].v[j])) return false;
  return true;
}

TEST(Simt, FindsCopiesThatAreNotWaitedFor) {
  for (unsigned seed = 1; seed <= 10; ++seed) EXPECT_TRUE(reverses_by_copies<CopyBug::none>(seed));
  EXPECT_SAYS("ended with an asynchronous copy", reverses_by_copies<CopyBug::never_waited>(1));
  if (simt::races_end_the_program()) GTEST_SKIP() << "TSan would report the races";
  EXPECT_FALSE(reverses_by_copies<CopyBug::no_wait>(1));
  EXPECT_FALSE(reverses_by_copies<CopyBug::no_barrier>(1));
  EXPECT_FALSE(reverses_by_copies<CopyBug::too_early>(1)) << "overwrites what others still read";
}

__global__ void copy_one(const float* in, float* out, int at, bool inside) {
  CUDP_SHARED(Four, to, [2]);
  copy_four_async(to[0].v, in + at, inside);
  wait_for_copies();
  for (int i = 0; i < 4; ++i) out[i] = to[0].v[i];
}

TEST(Simt, CopiesAreAlignedAndFillWithZeros) {
  const Four in[2] = {{{1, 2, 3, 4}}, {{5, 6, 7, 8}}};
  Four out{};
  const auto run = [&](int at, bool inside) {
    simt::launch(copy_one, dim3(1), dim3(1), 0, {}, in[0].v, out.v, at, inside);
  };
  run(4, true);
  EXPECT_EQ(out.v[3], 8.0f);
  run(4, false);
  EXPECT_EQ(out.v[3], 0.0f);
  EXPECT_SAYS("not aligned", run(2, true));
}

// --- Blocks against blocks ---

__global__ void add_all(const float* in, float* sum, unsigned* largest, std::uint64_t* count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(sum, in[i]);
  atomicMax(largest, i);
  atomicAdd(count, 1u);
}

TEST(Simt, AtomicsLoseNothing) {
  const std::vector<float> in(448, 0.25f);
  float sum = 0.0f;
  unsigned largest = 0;
  std::uint64_t count = 0;
  simt::launch(add_all, dim3(7), dim3(64), 0, {}, in.data(), &sum, &largest, &count);
  EXPECT_EQ(sum, 0.25f * 64 * 7);
  EXPECT_EQ(largest, 64u * 7 - 1);
  EXPECT_EQ(count, 64u * 7);
}

__global__ void read_neighbour_block(int* x) {
  const unsigned next = (blockIdx.x + 1) % gridDim.x;
  x[blockIdx.x] = x[next] + 1;
}

__global__ void unguarded_counter(int* counter) {
  const int seen = *counter;
  __syncthreads();
  *counter = seen + 1;
}

TEST(Simt, RacesBetweenBlocksDependOnTheSeed) {
  if (simt::races_end_the_program()) GTEST_SKIP() << "TSan would report the race";
  std::vector<std::vector<int>> results;
  for (unsigned seed = 1; seed <= 5; ++seed) {
    std::vector<int> x(8);
    simt::launch(read_neighbour_block, dim3(8), dim3(1), 0, {.seed = seed}, x.data());
    results.push_back(x);
  }
  EXPECT_FALSE(results[0] == results[1] && results[1] == results[2] && results[2] == results[3]);

  int counter = 0;
  simt::launch(unguarded_counter, dim3(8), dim3(1), 0, {}, &counter);
  EXPECT_LT(counter, 8) << "blocks in flight together lose updates";
}

// --- Dependent launches ---

enum class Waits { before_it_reads, after_it_reads, never, half_of_the_threads };

__global__ void makes(int* made) { made[blockIdx.x * blockDim.x + threadIdx.x] = 7; }

__global__ void reads_what_was_made(const int* made, int* out, Waits waits) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const int early = waits == Waits::after_it_reads ? made[i] : 0;
  if (waits != Waits::never && threadIdx.x % kWarp < 16) wait_for_primary();
  const int one = __shfl_sync(kFullWarp, 1, 0);
  if (waits != Waits::never && waits != Waits::half_of_the_threads) wait_for_primary();
  __syncthreads();
  out[i] = one * (waits == Waits::after_it_reads ? early : made[i]);
}

/// The part before the wait runs before the primary, in all blocks that are in flight.
TEST(Simt, FindsDependentLaunchesThatDoNotWait) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const auto run = [&](Waits waits) {
      std::vector<int> made(6 * 64), out(6 * 64);
      const auto primary = [&] { simt::launch(makes, dim3(6), dim3(64), 0, {}, made.data()); };
      simt::launch(reads_what_was_made, dim3(6), dim3(64), 0,
                   {.seed = seed, .is_dependent = true, .primary = primary}, made.data(),
                   out.data(), waits);
      return std::count(out.begin(), out.end(), 7);
    };
    EXPECT_EQ(run(Waits::before_it_reads), 6 * 64);
    EXPECT_LE(run(Waits::after_it_reads), 2 * 64);
    EXPECT_SAYS("ended without a wait", run(Waits::never));
    EXPECT_SAYS("ended without a wait", run(Waits::half_of_the_threads));
  }
}

TEST(Simt, APrimaryThatFailsFailsTheDependentLaunch) {
  int nothing_made = 0;
  const auto primary = [] { throw std::out_of_range("a primary"); };
  EXPECT_THROW(simt::launch(reads_what_was_made, dim3(1), dim3(32), 0,
                            {.is_dependent = true, .primary = primary}, &nothing_made,
                            &nothing_made, Waits::before_it_reads),
               std::out_of_range);
  std::vector<int> out(32);
  simt::launch(makes, dim3(1), dim3(32), 0, {}, out.data());
  EXPECT_EQ(out, std::vector<int>(32, 7)) << "the emulator goes on";
}

__global__ void throws_inside(int at) {
  if (static_cast<int>(threadIdx.x) == at) throw std::out_of_range("index 7 of 7");
}

TEST(Simt, AnExceptionInAKernelComesOut) {
  EXPECT_THROW(simt::launch(throws_inside, dim3(3), dim3(64), 0, {}, 40), std::out_of_range);
}

__global__ void block_sums(float* out) {
  CUDP_SHARED(float, partial, [32]);
  float total = block_sum(static_cast<float>(threadIdx.x), partial);
  for (int i = 1; i < 3; ++i) total += next_block_sum(static_cast<float>(threadIdx.x + i), partial);
  out[blockIdx.x * blockDim.x + threadIdx.x] = total;
}

TEST(Simt, BlockSumInEveryThreadForEverySchedule) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::vector<float> out(192);
    simt::launch(block_sums, dim3(2), dim3(96), 0, {.seed = seed}, out.data());
    for (const float v : out) EXPECT_EQ(v, 3.0f * 95 * 96 / 2 + 96 * 3);
  }
}

}  // namespace
}  // namespace cudp
