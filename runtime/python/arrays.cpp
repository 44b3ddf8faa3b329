#include "runtime/python/arrays.hpp"

#include "runtime/base/error.hpp"

namespace nb = nanobind;

namespace cudp::python {
namespace {

std::string type_of(const AnyArray& array, const std::string& name) {
  using Code = nb::dlpack::dtype_code;
  const auto type = array.dtype();
  const auto code = static_cast<Code>(type.code);
  const char kind = code == Code::Float  ? 'f'
                    : code == Code::Int  ? 'i'
                    : code == Code::UInt ? 'u'
                    : code == Code::Bool ? 'b'
                                         : '?';
  if (kind == '?' || type.lanes != 1 || type.bits > 64 || type.bits < 8)
    throw InputError(name +
                     ": expected numbers of 8 to 64 bits, such as float32 or int64, found another "
                     "type");
  return (type.bits == 8 ? "|" : "<") + std::string(1, kind) + std::to_string(type.bits / 8);
}

}  // namespace

GivenArray given_array(const AnyArray& array, const std::string& name) {
  GivenArray given{
      .name = name,
      .type = type_of(array, name),
      .shape = {},
      .strides = {},
      .data = static_cast<const std::byte*>(array.data()),
      .owner = std::shared_ptr<const AnyArray>(new AnyArray(array), [](const AnyArray* held) {
        const nb::gil_scoped_acquire gil;
        delete held;
      })};
  if (array.ndim() == 0) throw InputError(name + ": expected an array of rows, found one number");
  for (std::size_t d = 0; d < array.ndim(); ++d) {
    given.shape.push_back(array.shape(d));
    given.strides.push_back(array.stride(d) * static_cast<std::int64_t>(given.item_size()));
  }
  return given;
}

LabelledArrays labelled_arrays(nb::handle x, nb::handle y, const std::string& suffix) {
  LabelledArrays arrays{.x = given_array(nb::cast<AnyArray>(x), "X" + suffix), .y = {}};
  if (!y.is_none()) arrays.y = given_array(nb::cast<AnyArray>(y), "y" + suffix);
  return arrays;
}

}  // namespace cudp::python
