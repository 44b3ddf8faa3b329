// Arithmetic of floats and doubles: IEEE 754, rounded to nearest unless the name says otherwise. An
// f32 result that is NaN has the bits 0x7fffffff on a device, whatever its operands were.
#include <cmath>
#include <limits>

#include "tests/support/ptx/half.hpp"
#include "tests/support/ptx/operations.hpp"

namespace cudp::ptx {

namespace {

template <class T>
[[gnu::always_inline]] inline T canonical(T value) {
  if constexpr (sizeof(T) == 4) return value != value ? __builtin_nanf("0x3fffff") : value;
  return value;
}

struct Add {
  template <class T>
  static T f(T a, T b) {
    return canonical(a + b);
  }
};
struct Sub {
  template <class T>
  static T f(T a, T b) {
    return canonical(a - b);
  }
};
struct Mul {
  template <class T>
  static T f(T a, T b) {
    return canonical(a * b);
  }
};
struct Div {
  template <class T>
  static T f(T a, T b) {
    return canonical(a / b);
  }
};
/// The number if one operand is NaN; -0 is less than +0.
struct Min {
  template <class T>
  static T f(T a, T b) {
    const T least = a == b ? (std::signbit(a) ? a : b) : a < b ? a : b;
    return canonical(a != a ? b : b != b ? a : least);
  }
};
struct Max {
  template <class T>
  static T f(T a, T b) {
    const T most = a == b ? (std::signbit(a) ? b : a) : a > b ? a : b;
    return canonical(a != a ? b : b != b ? a : most);
  }
};
/// Towards zero. In double the sum is rounded to nearest, and what it lacks is known exactly.
struct AddTowardsZero {
  template <class T>
  static T f(T a, T b) {
    const double sum = static_cast<double>(a) + b;
    const double of_b = sum - a;
    const double lacks = (a - (sum - of_b)) + (b - of_b);
    float r = static_cast<float>(sum);
    const bool too_far =
        r == sum ? (r > 0 && lacks < 0) || (r < 0 && lacks > 0) : std::abs(r) > std::abs(sum);
    if (too_far) r = std::nextafter(r, 0.0f);
    return canonical(r);
  }
};

struct Negate {
  template <class T>
  static T f(T a) {
    return -a;
  }
};
struct SquareRoot {
  template <class T>
  static T f(T a) {
    return canonical(std::sqrt(a));
  }
};
struct Reciprocal {
  template <class T>
  static T f(T a) {
    return canonical(1 / a);
  }
};
/// rcp.approx.ftz.f64 is of the upper half of its operand, and has an upper half; what is too small
/// to be normal is zero. NVIDIA's table is not public: this is the reciprocal, cut.
struct CoarseReciprocal {
  template <class T>
  static T f(T a) {
    return upper_half(1 / upper_half(a));
  }

 private:
  static double upper_half(double value) {
    u64 bits = 0;
    std::memcpy(&bits, &value, 8);
    const bool normal = (bits & 0x7ff0000000000000u) != 0;
    const bool nan = value != value;
    bits &= normal ? 0xffffffff00000000u : 0x8000000000000000u;
    if (nan) bits |= u64{1} << 51;
    std::memcpy(&value, &bits, 8);
    return value;
  }
};

template <class T>
void fuse(Warp& w, const Instruction& i, u32 lanes) {
  const u8 *const a = w.row(i.s[0]), *const b = w.row(i.s[1]), *const c = w.row(i.s[2]);
  u8* const d = w.result(i.d[0]);
  for_lanes(lanes, [&](u32 l) {
    set<T>(d, l, canonical(std::fma(get<T>(a, l), get<T>(b, l), get<T>(c, l))));
  });
}
#ifdef CUDP_PTX_WIDE
/// The same with fma instructions: std::fma is a call otherwise. (A lambda would not have them.)
template <class T>
CUDP_PTX_WIDE void fuse_wide(Warp& w, const Instruction& i, u32 lanes) {
  const u8 *const a = w.row(i.s[0]), *const b = w.row(i.s[1]), *const c = w.row(i.s[2]);
  u8* const d = w.result(i.d[0]);
  if (lanes == ~0u) {
    CUDP_PTX_NO_DEPENDENCE
    for (u32 l = 0; l < kLanes; ++l)
      set<T>(d, l, canonical(std::fma(get<T>(a, l), get<T>(b, l), get<T>(c, l))));
  } else {
    for (; lanes != 0; lanes &= lanes - 1) {
      const auto l = static_cast<u32>(__builtin_ctz(lanes));
      set<T>(d, l, canonical(std::fma(get<T>(a, l), get<T>(b, l), get<T>(c, l))));
    }
  }
}
#endif
template <class T>
Action fused_action() {
#ifdef CUDP_PTX_WIDE
  if (wide_instructions()) return fuse_wide<T>;
#endif
  return fuse<T>;
}

/// Two fp16 numbers each. In long double their products and sums are exact, where they fit in fp16.
void fuse_halves(Warp& w, const Instruction& i, u32 lanes) {
  const u8 *const a = w.row(i.s[0]), *const b = w.row(i.s[1]), *const c = w.row(i.s[2]);
  u8* const d = w.result(i.d[0]);
  const auto of = [](u16 x, u16 y, u16 z) -> u32 {
    using Exact = long double;
    return half_bits(Exact{half_value(x)} * Exact{half_value(y)} + Exact{half_value(z)});
  };
  for_lanes(lanes, [&](u32 l) {
    const u32 x = get<u32>(a, l), y = get<u32>(b, l), z = get<u32>(c, l);
    set<u32>(d, l,
             of(high_half(x), high_half(y), high_half(z)) << 16 |
                 of(low_half(x), low_half(y), low_half(z)));
  });
}

template <class T>
void add_float(Table& t, const std::string& type) {
  for (const char* rounding : {"", "rn."}) {
    add_plain<T>(t, "add." + (rounding + type), binary<T, Add>, 2);
    add_plain<T>(t, "sub." + (rounding + type), binary<T, Sub>, 2);
    add_plain<T>(t, "mul." + (rounding + type), binary<T, Mul>, 2);
  }
  add_plain<T>(t, "fma.rn." + type, fused_action<T>(), 3);
  add_plain<T>(t, "div.rn." + type, binary<T, Div>, 2);
  add_plain<T>(t, "min." + type, binary<T, Min>, 2);
  add_plain<T>(t, "max." + type, binary<T, Max>, 2);
  add_plain<T>(t, "neg." + type, unary<T, Negate>, 1);
  add_plain<T>(t, "sqrt.rn." + type, unary<T, SquareRoot>, 1);
  add_plain<T>(t, "rcp.rn." + type, unary<T, Reciprocal>, 1);
}

}  // namespace

void add_floats(Table& t) {
  add_float<float>(t, "f32");
  add_float<double>(t, "f64");
  add_plain<u32>(t, "fma.rn.f16x2", fuse_halves, 3);
  add_plain<float>(t, "add.rz.f32", binary<float, AddTowardsZero>, 2);
  add_plain<double>(t, "rcp.approx.ftz.f64", unary<double, CoarseReciprocal>, 1);
}

}  // namespace cudp::ptx
