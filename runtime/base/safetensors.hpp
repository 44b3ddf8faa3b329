#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.hpp"

namespace cudp {

/// Content of a safetensors file: parameters with names and shapes, and a map of texts.
struct TensorFile {
  /// Name, shape, offset in `values` and size of each tensor. Other members of ParameterTensor are
  /// not used.
  std::vector<ParameterTensor> tensors;
  std::vector<float> values;  ///< values of all tensors, each tensor's at its offset
  std::map<std::string, std::string> metadata;
};

/// Returns the bytes of a safetensors file: 64-bit length of the header, JSON header, float32
/// numbers from a multiple of 64 bytes on. The same input gives the same bytes.
std::string encode_safetensors(const TensorFile& file);

/// Reads a safetensors file of float32 tensors, written by encode_safetensors() or another program.
/// source: name of the file in error messages. Throws InputError if the file is malformed, or has
/// tensors of another type.
TensorFile decode_safetensors(std::string_view bytes, const std::string& source);

/// Reads the tensors of floating-point numbers (F16, BF16, F32, F64) in a safetensors file,
/// converted to float32; skips tensors of other types. source: name of the file in error messages.
/// Throws InputError if the file is malformed, or on a number that is not finite.
TensorFile decode_floats(std::string_view bytes, const std::string& source);

/// A matrix of floats, row-major.
struct Matrix {
  int rows = 0;
  int columns = 0;
  std::vector<float> values;  ///< [rows, columns]
};

/// Reads one matrix of float32 or float16 numbers from a safetensors file: the tensor with the name
/// `name` or, if that is empty, the only tensor with two dimensions. Other tensors of the file may
/// have any type. Throws InputError, with the names of the file's matrices, if there is no such
/// matrix or more than one; also if a number is not finite. source: name of the file in error
/// messages.
Matrix decode_matrix(std::string_view bytes, const std::string& source, const std::string& name);

}  // namespace cudp
