#pragma once
#include <memory>
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "runtime/data/given_arrays.hpp"

namespace cudp::python {

/// Any array of numbers in the memory of the CPU, which is only read.
using AnyArray = nanobind::ndarray<nanobind::ro, nanobind::device::cpu>;

/// Returns an array as the data reader takes it. The memory stays the array's. Throws InputError if
/// the array has a type that is not one of numbers, or no dimension.
GivenArray given_array(const AnyArray& array, const std::string& name);

/// Returns labelled arrays; y: an array or None.
LabelledArrays labelled_arrays(nanobind::handle x, nanobind::handle y, const std::string& suffix);

}  // namespace cudp::python
