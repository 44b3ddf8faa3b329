// Scattering transform on the CPU. Each lane of a SIMD register holds another plane (one colour of
// one image), so the arithmetic is that of the scalar algorithm, and images of all sizes use the
// same code.
#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/common/vec.hpp"
#include "kernels/features/fourier_lanes.hpp"
#include "kernels/features/scatter.hpp"

namespace cudp::CUDP_SIMD {
namespace {

/// Arrays of the scattering transform in its working memory. Complex images have rows of `columns +
/// 1` numbers: an odd stride, so that the numbers of a column are spread over the cache's sets.
struct Work {
  Vec* image;
  Complex* spectrum0;  ///< Fourier transform of the padded image
  Complex* spectrum1;  ///< Fourier transform of |image * first-order wavelet|
  Complex* half;       ///< an image, Fourier-transformed along its rows only
  Complex* line;       ///< one row or column, followed by the working memory of fourier()
  Vec* real_line;
  Vec* low;       ///< [blocks * 8][columns]: image after the low-pass filter along its columns
  Vec* low_line;  ///< [out_height][blocks * 8]: image after the low-pass filter along both axes
};

Work parts_of(const Scatter& s) {
  const ScatterTables& t = *s.tables;
  const std::int64_t pixels = static_cast<std::int64_t>(t.rows[0]) * t.columns[0];
  const std::int64_t complex_pixels = static_cast<std::int64_t>(t.rows[0]) * (t.columns[0] + 1);
  const int longest = t.rows[0] > t.columns[0] ? t.rows[0] : t.columns[0];
  Work w{};
  w.image = reinterpret_cast<Vec*>(s.work);
  w.spectrum0 = reinterpret_cast<Complex*>(w.image + pixels);
  w.spectrum1 = w.spectrum0 + complex_pixels;
  w.half = w.spectrum1 + complex_pixels;
  w.line = w.half + complex_pixels;
  w.real_line = reinterpret_cast<Vec*>(w.line + std::int64_t{3} * longest);
  w.low = w.real_line + longest;
  w.low_line = w.low + static_cast<std::int64_t>(low_pass_blocks(t.out_height)) * kLowPassBlock *
                           t.columns[0];
  return w;
}

template <class Value>
CUDP_INLINE void gather_planes(const Scatter& s, Vec* image, Value value) {
  const ScatterTables& t = *s.tables;
  const std::int64_t plane = static_cast<std::int64_t>(t.height) * t.width;
  for (int y = 0; y < t.rows[0]; ++y)
    for (int x = 0; x < t.columns[0]; ++x) {
      const std::int64_t from =
          static_cast<std::int64_t>(t.row_from[y]) * t.width + t.column_from[x];
      float lane[kLanes] = {};
      for (int p = 0; p < s.planes; ++p) lane[p] = value(from + p * plane);
      image[static_cast<std::int64_t>(y) * t.columns[0] + x] = load(lane);
    }
}

void load_planes(const Scatter& s, Vec* image) {
  const float scale = s.scale;
  const float shift = s.shift;
  if (s.bytes != nullptr)
    gather_planes(s, image, [scale, shift, bytes = s.bytes](std::int64_t i) {
      return scale * static_cast<float>(bytes[i]) + shift;
    });
  else
    gather_planes(s, image, [floats = s.floats](std::int64_t i) { return floats[i]; });
}

/// Applies the low-pass filter to one line (row or column) of n numbers, and keeps every fourth
/// result only. Writes 8 * blocks results, at a distance of `step`: out[0], out[step], ... table:
/// the filter's matrix, ScatterTables::low_rows or low_columns.
CUDP_INLINE void low_pass_line(const Vec* in, int n, const float* table, int blocks, Vec* out,
                               std::int64_t step) {
  for (int b = 0; b < blocks; ++b) {
    Vec sum[kLowPassBlock] = {};
    for (int j = 0; j < n; ++j, table += kLowPassBlock) {
      const Vec v = in[j];
      CUDP_UNROLL
      for (int i = 0; i < kLowPassBlock; ++i) {
        sum[i] += v * table[i];
      }
    }
    for (int i = 0; i < kLowPassBlock; ++i) out[(b * kLowPassBlock + i) * step] = sum[i];
  }
}

/// Applies the low-pass filter along the rows of w.low, which low_pass() has filtered along its
/// columns. Writes the result to s.out, as feature channel `channel` of every plane.
void finish_channel(const Scatter& s, const Work& w, int level, int channel) {
  const ScatterTables& t = *s.tables;
  const int columns = t.columns[level];
  const int blocks = low_pass_blocks(t.out_width);
  const int line = blocks * kLowPassBlock;
  for (int y = 0; y < t.out_height; ++y)
    low_pass_line(w.low + static_cast<std::int64_t>(y) * columns, columns, t.low_columns[level],
                  blocks, w.low_line + static_cast<std::int64_t>(y) * line, 1);
  const auto* const lanes = reinterpret_cast<const char*>(w.low_line);
  for (int p = 0; p < s.planes; ++p) {
    float* out =
        s.out + (static_cast<std::int64_t>(p) * kScatterChannels + channel) * t.out_pixels();
    for (int y = 0; y < t.out_height; ++y)
      for (int x = 0; x < t.out_width; ++x)
        __builtin_memcpy(out++,
                         lanes + ((static_cast<std::int64_t>(y) * line + x) * kLanes + p) *
                                     static_cast<std::int64_t>(sizeof(float)),
                         sizeof(float));
  }
}

void low_pass(const Scatter& s, const Work& w, int level, int channel) {
  const ScatterTables& t = *s.tables;
  const int rows = t.rows[level];
  const int columns = t.columns[level];
  for (int x = 0; x < columns; ++x) {
    for (int y = 0; y < rows; ++y)
      w.real_line[y] = w.image[static_cast<std::int64_t>(y) * columns + x];
    low_pass_line(w.real_line, rows, t.low_rows[level], low_pass_blocks(t.out_height), w.low + x,
                  columns);
  }
  finish_channel(s, w, level, channel);
}

/// Computes the Fourier transform of w.image, the padded image. Two real rows are transformed as
/// one complex row. Only half of the columns are transformed; the others are the complex conjugates
/// of their mirror images, because the image is real.
void transform_image(const Scatter& s, const Work& w, Complex* spectrum) {
  const ScatterTables& t = *s.tables;
  const int rows = t.rows[0];
  const int columns = t.columns[0];
  const std::int64_t stride = columns + 1;
  const int half_columns = columns / 2 + 1;
  Complex* const work = w.line + columns;
  for (int y = 0; y < rows; y += 2) {
    const Vec* const a = w.image + static_cast<std::int64_t>(y) * columns;
    for (int x = 0; x < columns; ++x) w.line[x] = {a[x], a[columns + x]};
    fourier(t.row_plan[0], w.line, 1, w.line, 1, work);
    Complex* const to = w.half + y * stride;
    for (int x = 0; x < half_columns; ++x) {
      const Complex z = w.line[x];
      const Complex m = w.line[x == 0 ? 0 : columns - x];  // mirrored
      to[x] = {0.5f * (z.re + m.re), 0.5f * (z.im - m.im)};
      to[stride + x] = {0.5f * (z.im + m.im), 0.5f * (m.re - z.re)};
    }
  }
  for (int x = 0; x < half_columns; ++x)
    fourier(t.column_plan[0], w.half + x, stride, spectrum + x, stride, w.line);
  for (int y = 0; y < rows; ++y)
    for (int x = half_columns; x < columns; ++x) {
      const Complex m = spectrum[(y == 0 ? 0 : rows - y) * stride + columns - x];
      spectrum[y * stride + x] = {m.re, -m.im};
    }
}

/// Computes one wavelet's feature: |image * wavelet|, subsampled to every 2^level-th pixel in both
/// directions, then low-pass filtered, as feature channel `channel`. spectrum and psi are the
/// Fourier transforms of image and wavelet. If `keep`, leaves the unfiltered modulus in w.image.
///
/// At level 1 the image is subsampled by adding up the four quarters of its spectrum. The inverse
/// transform is computed as a forward transform with real and imaginary parts swapped, which gives
/// the same modulus.
void wavelet(const Scatter& s, const Work& w, const Complex* spectrum, const float* psi, int level,
             int channel, bool keep) {
  const ScatterTables& t = *s.tables;
  const int rows = t.rows[level];
  const int columns = t.columns[level];
  const std::int64_t stride = columns + 1;
  const std::int64_t from_stride = t.columns[0] + 1;
  for (int y = 0; y < rows; ++y) {
    for (int x = 0; x < columns; ++x) {
      const Complex* const f = spectrum + y * from_stride + x;
      const float* const p = psi + static_cast<std::int64_t>(y) * t.columns[0] + x;
      Complex sum = f[0] * p[0];
      if (level == 1) {
        const std::int64_t down = static_cast<std::int64_t>(rows) * t.columns[0];
        const Complex* const g = f + rows * from_stride;
        sum = sum + f[columns] * p[columns];
        sum = sum + (g[0] * p[down] + g[columns] * p[down + columns]);
      }
      w.line[x] = {sum.im, sum.re};
    }
    fourier(t.row_plan[level], w.line, 1, w.half + y * stride, 1, w.line + columns);
  }
  for (int x = 0; x < columns; ++x) {
    fourier(t.column_plan[level], w.half + x, stride, w.line, 1, w.line + rows);
    for (int y = 0; y < rows; ++y) {
      const Complex z = w.line[y];
      w.real_line[y] = sqrt(z.re * z.re + z.im * z.im);
    }
    if (keep)
      for (int y = 0; y < rows; ++y)
        w.image[static_cast<std::int64_t>(y) * columns + x] = w.real_line[y];
    low_pass_line(w.real_line, rows, t.low_rows[level], low_pass_blocks(t.out_height), w.low + x,
                  columns);
  }
  finish_channel(s, w, level, channel);
}

}  // namespace

void scatter(const Scatter& s) {
  const ScatterTables& t = *s.tables;
  const Work w = parts_of(s);
  const std::int64_t pixels = static_cast<std::int64_t>(t.rows[0]) * t.columns[0];
  const auto psi = [&](int scale, int angle) {
    return t.psi + (scale * kScatterAngles + angle) * pixels;
  };
  load_planes(s, w.image);
  low_pass(s, w, 0, 0);
  transform_image(s, w, w.spectrum0);
  for (int a = 0; a < kScatterAngles; ++a) {
    wavelet(s, w, w.spectrum0, psi(1, a), 1, 1 + kScatterAngles + a, false);
    wavelet(s, w, w.spectrum0, psi(0, a), 0, 1 + a, true);
    transform_image(s, w, w.spectrum1);
    for (int b = 0; b < kScatterAngles; ++b)
      wavelet(s, w, w.spectrum1, psi(1, b), 1, 1 + 2 * kScatterAngles + a * kScatterAngles + b,
              false);
  }
}

}  // namespace cudp::CUDP_SIMD
