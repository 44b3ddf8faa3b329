#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/common/vec.hpp"
#include "kernels/layers/recurrent.hpp"
#include "kernels/layers/recurrent_math.hpp"

namespace cudp::CUDP_SIMD {
namespace {

/// Calls f(offset) for every SIMD vector of kLanes hidden units of all examples of a step s.
/// offset: distance of the vector's first unit from the start of each array. F: type of the
/// function f. Step: LstmStep or GruStep.
template <class Step, class F>
CUDP_INLINE void for_each_vector(const Step& s, F f) {
  for (int m = 0; m < s.rows; ++m)
    for (int j = 0; j < s.units; j += kLanes) f(std::int64_t{s.row[m]} + j);
}

template <class Step>
CUDP_INLINE float* gate(const Step& s, int number, std::int64_t at) {
  return s.gates + static_cast<std::int64_t>(number) * s.units + at;
}

CUDP_INLINE LstmUnit<Vec> load_unit(const LstmStep& s, std::int64_t at) {
  return {load(gate(s, 0, at)), load(gate(s, 1, at)), load(gate(s, 2, at)), load(gate(s, 3, at))};
}
CUDP_INLINE void store_unit(const LstmStep& s, std::int64_t at, const LstmUnit<Vec>& u) {
  store(gate(s, 0, at), u.i);
  store(gate(s, 1, at), u.f);
  store(gate(s, 2, at), u.g);
  store(gate(s, 3, at), u.o);
}

CUDP_INLINE GruUnit<Vec> load_unit(const GruStep& s, std::int64_t at) {
  return {load(gate(s, 0, at)), load(gate(s, 1, at)), load(gate(s, 2, at)), load(gate(s, 3, at))};
}
CUDP_INLINE void store_unit(const GruStep& s, std::int64_t at, const GruUnit<Vec>& u) {
  store(gate(s, 0, at), u.n);
  store(gate(s, 1, at), u.r);
  store(gate(s, 2, at), u.z);
  store(gate(s, 3, at), u.product);
}

}  // namespace

void lstm_forward(const LstmStep& s) {
  for_each_vector(s, [&](std::int64_t at) {
    LstmUnit<Vec> u = load_unit(s, at);
    u.activate();
    const Vec c = u.state(load(s.c_before + at));
    const Vec c_tanh = tanh_of(c);
    store_unit(s, at, u);
    store(s.c + at, c);
    store(s.c_tanh + at, c_tanh);
    store(s.h + at, u.output(c_tanh));
  });
}

void lstm_backward(const LstmStep& s) {
  for_each_vector(s, [&](std::int64_t at) {
    LstmUnit<Vec> u = load_unit(s, at);
    Vec dc = load(s.dc + at);
    u.backward(load(s.dh + at), dc, load(s.c_before + at), load(s.c_tanh + at));
    store_unit(s, at, u);
    store(s.dc + at, dc);
  });
}

void gru_forward(const GruStep& s) {
  for (int m = 0; m < s.rows; ++m)
    for (int j = 0; j < s.units; j += kLanes) {
      const std::int64_t at = std::int64_t{s.row[m]} + j;
      GruUnit<Vec> u = load_unit(s, at);
      u.r += load(s.bias + j);
      u.z += load(s.bias + s.units + j);
      u.product += load(s.bias + std::int64_t{2} * s.units + j);
      u.activate();
      store_unit(s, at, u);
      store(s.h + at, u.state(load(s.h_before + at)));
    }
}

void gru_backward(const GruStep& s) {
  for_each_vector(s, [&](std::int64_t at) {
    GruUnit<Vec> u = load_unit(s, at);
    Vec dh = load(s.dh + at);
    u.backward(dh, load(s.h_before + at));
    store_unit(s, at, u);
    store(s.dh + at, dh);
  });
}

}  // namespace cudp::CUDP_SIMD
