#pragma once
#include <memory>
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "runtime/data/given_arrays.hpp"

namespace cudp::python {

/// Array passed from Python (e.g. NumPy's), in the memory of the CPU; read-only.
using AnyArray = nanobind::ndarray<nanobind::ro, nanobind::device::cpu>;

/// Returns an array in the form that the data reader takes. The result shares the array's memory
/// and keeps it alive. name: name of the array in messages. Throws InputError if the array is not
/// of numbers, or has no dimension.
GivenArray given_array(const AnyArray& array, const std::string& name);

/// Returns examples x with their labels y, an array, or without labels if y is None. suffix:
/// appended to the names X and y in messages.
LabelledArrays labelled_arrays(nanobind::handle x, nanobind::handle y, const std::string& suffix);

}  // namespace cudp::python
