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
# A comment at the start of a cell is prose.
squares = [x**2 for x in range(5)]
squares

# %% [markdown]
# ## Their sum

# %%
sum(squares)
