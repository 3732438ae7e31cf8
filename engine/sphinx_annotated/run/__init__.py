"""Run chapters in kernels, and record their outputs and the shapes of their tensors."""
