# ---
# jupyter:
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # Cells
#
# A notebook in the format of Jupytext. *This* cell is Markdown, with $x^2$.

# %%
# A comment in a cell of code is plain text.
squares = [x**2 for x in range(5)]
squares

# %% [markdown]
# ## Their sum

# %%
sum(squares)
