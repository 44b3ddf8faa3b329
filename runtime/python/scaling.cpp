#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "runtime/python/module.hpp"

namespace nb = nanobind;

namespace cudp::python {
namespace {

template <class Number>
using Rows = nb::ndarray<const Number, nb::ndim<2>, nb::device::cpu>;
using Bounds = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ScaledRows = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

/// Scales `count` features from low..high to -1..1, in double precision. A feature beyond a bound
/// counts as the bound. x: features of a row, `stride` elements apart. width [count]: high - low,
/// or 1 where that is 0. Subtracts `low` before it multiplies, so that no value overflows.
template <class Number>
void scale_row(const Number* x, std::int64_t stride, const double* low, const double* high,
               const double* width, std::size_t count, float* scaled) {
  for (std::size_t j = 0; j < count; ++j) {
    const double value = x[static_cast<std::int64_t>(j) * stride];
    const double inside = std::min(std::max(value, low[j]), high[j]);
    scaled[j] = static_cast<float>((inside - low[j]) / width[j] * 2.0 - 1.0);
  }
}

/// Scales all rows of x, of any strides, into `scaled`. Requires equal shapes.
template <class Number>
void scale_rows(const Rows<Number>& x, const Bounds& low, const Bounds& high, const Bounds& width,
                const ScaledRows& scaled) {
  const std::size_t rows = x.shape(0), count = x.shape(1);
  if (scaled.shape(0) != rows || scaled.shape(1) != count || low.shape(0) != count ||
      high.shape(0) != count || width.shape(0) != count)
    throw nb::value_error("scale_rows: expected arrays of equal widths, found others");
  const nb::gil_scoped_release without_gil;
  for (std::size_t i = 0; i < rows; ++i) {
    const Number* const row = x.data() + static_cast<std::int64_t>(i) * x.stride(0);
    float* const out = scaled.data() + i * count;
    if (x.stride(1) == 1)  // a loop of its own, which the compiler can vectorise
      scale_row(row, 1, low.data(), high.data(), width.data(), count, out);
    else
      scale_row(row, x.stride(1), low.data(), high.data(), width.data(), count, out);
  }
}

}  // namespace

void bind_scaling(nb::module_& m) {
  m.def("scale_rows", &scale_rows<float>, nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg(),
        nb::arg().noconvert());
  m.def("scale_rows", &scale_rows<double>, nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg(),
        nb::arg().noconvert());
}

}  // namespace cudp::python
